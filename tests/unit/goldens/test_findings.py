"""Findings are data: one key for one cause, and what a file has of them is what was found."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from executorch_goldens.artifact import AnyCasualty, Killed, Lost
from executorch_goldens.goldens import findings
from executorch_goldens.goldens.decisions import KNOWN, Decision, inline
from executorch_goldens.goldens.findings import (
    KINDS,
    CaseFails,
    ChangedModel,
    Deviated,
    Element,
    Finding,
    LostSignal,
    NotFinished,
    OneOf,
    TensorType,
    UnequalOutputs,
    WrongValues,
    cause,
    matches,
    without_details,
)
from tests.support.findings import EVERY


def kind(found: type) -> str:
    return str(found.__struct_config__.tag)  # type: ignore[attr-defined]


def test_each_kind_of_finding_is_here_and_has_a_name_of_its_own() -> None:
    assert {*map(type, EVERY)} == {*get_args(OneOf)}
    kinds = [kind(each) for each in (*get_args(OneOf), *get_args(AnyCasualty))]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("found", EVERY, ids=lambda found: kind(type(found)))
def test_a_finding_is_read_from_a_file_as_it_was_written(found: Finding) -> None:
    text = json.dumps(msgspec.to_builtins((found,)))
    (read,) = msgspec.convert(json.loads(text), tuple[OneOf, ...])
    assert type(read) is type(found)
    # A NaN is not equal to itself.
    assert repr(read) == repr(found)


@pytest.mark.parametrize("found", EVERY, ids=lambda found: kind(type(found)))
def test_a_decision_can_name_what_is_found_and_is_about_it_when_it_is_read_again(found: Finding) -> None:
    key = cause([found])
    assert {*key} <= {"kind", *KINDS[key["kind"]]}
    read = tomllib.loads(f"finding = {inline(key)}")["finding"]
    known = Decision(KNOWN, "corrupt", finding=read, releases=("1.5.1",), cells=("a/b",))
    assert known.is_about(key)


def test_a_kind_that_no_key_has_cannot_be_named() -> None:
    assert {cause([each])["kind"] for each in EVERY} | {kind(each) for each in get_args(AnyCasualty)} == {
        *KINDS
    }


@pytest.mark.parametrize("found", EVERY, ids=lambda found: kind(type(found)))
def test_what_was_measured_is_in_no_key(found: Finding) -> None:
    measured = {name for name, each in msgspec.structs.asdict(found).items() if isinstance(each, float)}
    moved = msgspec.structs.replace(found, **dict.fromkeys(measured, 77.0))
    if isinstance(values := getattr(found, "values", None), Deviated):
        other = msgspec.structs.replace(values, differing=5, size=5, largest=77.0, mean=7.0, elements=())
        moved = msgspec.structs.replace(moved, values=other)
    assert moved.key() == found.key()
    # Of numbers in what upstream says nothing is left; those of dtypes and operators are names.
    said = " ".join(each for each in found.key().values() if isinstance(each, str))
    assert not re.search(r"(?<![A-Za-z\d])\d", said)


def test_what_is_one_defect_in_two_models_has_one_key() -> None:
    small, large = (TensorType("int8", shape) for shape in ((2,), (3, 4)))
    one, other = (
        WrongValues(0, sample, Deviated(of, of, number, number, 1.0 * number))
        for sample, of, number in (("example", small, 1), ("zeros", large, 12))
    )
    assert cause([one]) == cause([other]) == {"kind": "wrong-values", "dtype": "int8", "output": [0]}
    lost = (LostSignal(Lost(0, ratio, 20.0, (), True, "conv2d")) for ratio in (1.5, 12.0))
    assert len({json.dumps(cause([each])) for each in lost}) == 1


def test_two_that_differ_in_what_was_printed_and_in_single_elements_are_as_wrong_as_each_other() -> None:
    element = Element((1,), 2.0, 1.0, 0.0)
    values = Deviated(TensorType("int8", (2,)), TensorType("int8", (2,)), 1, 2, 1.0)
    pairs = (
        (NotFinished("a", Killed("SIGSEGV", tail=("x",))), NotFinished("a", Killed("SIGSEGV"))),
        (CaseFails("ValueError", "no", ("x",)), CaseFails("ValueError", "no")),
        *((of(values), of(replace(values, elements=(element,)))) for of in OF_VALUES),
    )
    for one, other in pairs:
        assert one != other
        assert without_details(one) == without_details(other)
    more = replace(values, largest=2.0)
    assert all(without_details(of(values)) != without_details(of(more)) for of in OF_VALUES)


#: Kinds with values, at any depth.
OF_VALUES: tuple[Callable[[Deviated], Finding], ...] = (
    lambda values: WrongValues(0, "example", values),
    lambda values: ChangedModel("mask", "SomePass", values),
    lambda values: UnequalOutputs((), (WrongValues(0, "example", values),), ()),
)


@pytest.mark.parametrize(
    ("pattern", "key", "is_about"),
    [
        ({"error": "ValueError: * of […]"}, {"error": "ValueError: no size of […]"}, True),
        ({"error": "ValueError: no size"}, {"error": "ValueError: no size of […]"}, False),
        ({"error": "ValueError: *"}, {"error": "KeyError: ValueError: no"}, False),
        ({"error": "ValueError: ["}, {"error": "ValueError: ["}, True),
        ({"error": "*"}, {}, False),
        ({"output": 0}, {"output": [0]}, True),
        ({"output": [0, 2]}, {"output": [0, 2]}, True),
        ({"output": 0}, {"output": [0, 2]}, False),
        ({}, {"kind": "hidden"}, True),
    ],
)
def test_a_pattern_is_of_what_it_names_and_a_star_is_what_upstream_says(
    pattern: findings.Key, key: findings.Key, is_about: bool
) -> None:
    assert matches(pattern, key) is is_about
