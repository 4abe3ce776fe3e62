"""Causes of wrong values: where these begin groups cells, and the largest error comes first."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Beginning, Lost, Spot
from executorch_goldens.causes.groups import Group, Member, grouped, read_members, worst_first
from executorch_goldens.diff.quantities import Quantities
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import (
    Begins,
    BeginsElsewhere,
    CaseFails,
    Deviated,
    Differs,
    Finding,
    Frame,
    LostSignal,
    OwnFileFails,
    TensorType,
    UnsteadyCase,
    WrongType,
    WrongValues,
)
from executorch_goldens.goldens.record import MODEL
from executorch_goldens.results import proposals
from executorch_goldens.results.proposals import CellFile, Proposal
from executorch_goldens.review import listing
from tests.support.screens import screen

Propose = Callable[..., Proposal]
GROUPS = (("seed0-heap0",), ("seed4-heap1",))


def spot(node: str) -> Spot:
    """Return the place of an operator, of which XNNPACK's payload does not tell."""
    return Spot(
        delegate="lowered_module_0",
        operator="",
        node=f"{node} {node}",
        module="",
        before=(),
        unseen=(),
        agrees=True,
        alone=True,
    )


TYPE = TensorType("float32", (4,))
WRONG = WrongValues(0, "example", Deviated(TYPE, TYPE, 2, 4, 0.5, 0.1, 0.01, 0.01))
GELU, LINEAR = (
    Begins("example", spot(node), "XnnpackBackend", WRONG.values) for node in ("aten.gelu", "aten.linear")
)


def proposal(
    name: str, verdict: str, *found: Finding, blamed: str | None = None, folder: Path = Path(), **fields: Any
) -> Proposal:
    target, case = name.split("/")
    return Proposal(
        *("1.5.1", target, case, verdict, found, blamed, None, None, ("models",), None, "", {}),
        folder=folder,
        **fields,
    )


@pytest.fixture
def propose(tmp_path: Path) -> Propose:
    """Write the proposal of a new cell that is corrupt."""

    def make(name: str, used: float | None, *found: Finding, verdict: str = "corrupt") -> Proposal:
        accuracy = None if used is None else Accuracy(0.1, 0.1, used)
        folder = tmp_path / "sweeps" / "1.5.1" / name
        made = proposal(name, verdict, *(found or (WRONG,)), accuracy=accuracy, folder=folder)
        CellFile(made).write(folder)
        return made

    return make


def causes(tmp_path: Path) -> list[Group]:
    return worst_first(grouped(read_members(proposals.find(tmp_path / "sweeps"), tmp_path / "goldens")))


def named(groups: list[Group]) -> list[list[str]]:
    return [[str(member.proposal.cell) for member in group.members] for group in groups]


def test_wrong_values_that_begin_in_different_places_are_different_causes_the_worst_first(
    propose: Propose, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    propose("xnnpack-fp32/gelu", 161.0, WRONG, GELU)
    propose("xnnpack-fp32/linear", 40.0, WRONG, LINEAR)
    propose("xnnpack-int8/linear", 4e5, WRONG, LINEAR)
    propose("xnnpack-fp32/state", 7e5)
    propose("xnnpack-fp32/narrow", 3.0)
    propose("tosa-fp/nan", math.inf, WRONG, BeginsElsewhere("example", Beginning("before the delegates", "")))
    groups = causes(tmp_path)
    assert named(groups) == [
        ["tosa-fp/nan"],
        ["xnnpack-fp32/state"],
        ["xnnpack-fp32/linear", "xnnpack-int8/linear"],
        ["xnnpack-fp32/gelu"],
        ["xnnpack-fp32/narrow"],
    ]
    assert str(groups[2].specimen.proposal.cell) == "xnnpack-int8/linear"
    assert screen(listing.listing(groups, {}), {tmp_path: "TMP"}) == snapshot


def test_cells_whose_signal_is_lost_have_one_cause_where_one_kind_of_quantization_loses_it(
    propose: Propose, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """Their sentences are alike: it is how much is left that differs, and a reason is without numbers."""
    weights = "a parameter of aten.linear.default in codes -8 to 7"
    for cell, decibels, loses in (
        ("built/four-bits", 18.4, weights),
        ("tosa-int/four-bits", 17.9, weights),
        ("built/mask", 1.4, "aten.add.Tensor in codes -128 to 127"),
        ("built/unknown", 1.4, ""),
        ("built/another", 1.4, ""),
    ):
        propose(cell, 0.5, LostSignal(Lost(0, decibels, 20.0, (), by=loses)), verdict="imprecise")
    groups = causes(tmp_path)
    assert sorted(named(groups)) == [
        ["built/another"],
        ["built/four-bits", "tosa-int/four-bits"],
        ["built/mask"],
        ["built/unknown"],
    ]
    assert [group.title for group in groups if len(group.members) > 1] == snapshot


def test_a_cell_that_gives_no_number_is_worse_than_any_error_and_one_that_is_not_wrong_comes_last(
    propose: Propose, tmp_path: Path
) -> None:
    propose("xnnpack-fp32/a", 1e6, WRONG, GELU)
    propose("xnnpack-fp32/b", None)
    for case in "cdef":
        propose(f"xnnpack-fp32/{case}", 0.5, verdict="new")
    assert named(causes(tmp_path)) == [
        ["xnnpack-fp32/b"],
        ["xnnpack-fp32/a"],
        [f"xnnpack-fp32/{case}" for case in "cdef"],
    ]


def test_the_list_of_a_review_has_the_order_of_a_run_within_each_heading(
    propose: Propose, tmp_path: Path
) -> None:
    propose("xnnpack-fp32/small", 2.0, WRONG, GELU)
    propose("xnnpack-int8/small", 2.0, WRONG, GELU)
    propose("xnnpack-fp32/large", 9.0, WRONG, LINEAR)
    groups = grouped(read_members(proposals.find(tmp_path / "sweeps"), tmp_path / "goldens"))
    assert named(groups)[0] == ["xnnpack-fp32/large"]
    assert groups == worst_first(groups)


def test_cases_that_draw_their_weights_are_one_cause_whichever_weights_these_are(
    snapshot: SnapshotAssertion,
) -> None:
    members = [
        Member(
            proposal(f"built/{case}", "unstable", UnsteadyCase(GROUPS, (names,)), blamed=MODEL),
            *(None, None, {}, Quantities(), ""),
        )
        for case, names in (("one", "0.weight"), ("two", "layers.2.bias"))
    ]
    first, second = (Group((member,), {}) for member in members)
    assert first.title == snapshot
    assert first.cause == second.cause


@pytest.mark.parametrize(
    ("verdict", "blamed", "found", "rejects"),
    [
        ("failed", None, CaseFails("ValueError", "no"), False),
        ("failed", None, OwnFileFails("KeyError", "1", at=Frame("/a.py", 1, "f")), False),
        ("unstable", MODEL, UnsteadyCase(GROUPS, ("0.weight",)), False),
        ("changed", MODEL, Differs(("model",)), True),
        ("corrupt", "pass", WRONG, True),
    ],
)
def test_what_is_wrong_in_the_case_is_not_rejected(
    verdict: str, blamed: str | None, found: Finding, rejects: bool
) -> None:
    made = proposal("tosa-fp/linear", verdict, found, blamed=blamed)
    group = Group((Member(made, None, None, {}, Quantities(), ""),), {})
    assert ("reject" in listing.actions(group)) is rejects


def test_a_title_has_the_numbers_of_one_of_its_cells(snapshot: SnapshotAssertion) -> None:
    found = WrongType(0, "drawn", Deviated(TensorType("float32", (2, 3)), TensorType("int64", (2, 3))))
    made = proposal("tosa-fp/linear", "corrupt", found)
    assert Group((Member(made, None, None, {}, Quantities(), ""),), {}).title == snapshot
