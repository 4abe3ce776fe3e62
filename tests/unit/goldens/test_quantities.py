"""Quantities with a direction: in the message of a change, and against budgets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.diff import quantities
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.quantities import Quantities
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.goldens.decisions import BUDGET, Decision, Decisions
from executorch_goldens.goldens.findings import Exceeded, OverBudget
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.quantities import BudgetLimits, measured, over
from executorch_goldens.goldens.record import MANIFEST, PROGRAM, Record
from executorch_goldens.judging import verdict
from executorch_goldens.words.drift import Drift
from executorch_goldens.words.findings import lines
from tests import REPOSITORY
from tests.conftest import Artifacts
from tests.support.making import with_texts
from tests.support.screens import of_verdict, screen

CELL = Cell("xnnpack-fp32", "alpha")


def directed(before: Inventory, after: Inventory) -> list[str]:
    return [*quantities.directions(before, after, Quantities.between(before, after))]


@pytest.fixture
def texts(artifacts: Artifacts) -> Record:
    return rendering.render(artifacts["steady"][0], rendering.MadeWith({}, ["seed0-heap0"], Numerics()))


def planned(texts: Record, *arenas: int) -> dict[str, str]:
    """Return a golden whose program plans so many bytes in each arena."""
    sizes = ", ".join(map(str, (0, *arenas)))
    program = re.sub(
        r"non_const_buffer_sizes = \[.*\]", f"non_const_buffer_sizes = [{sizes}]", texts.texts()["pte"]
    )
    return with_texts(texts, {"pte": program})


def test_what_is_measured_is_what_the_artifact_has(texts: Record, artifacts: Artifacts) -> None:
    result = artifacts["steady"][0].result
    found = measured(texts.inventory)
    assert found["program"] == len(result.pte)  # type: ignore[union-attr]
    assert found["delegates"] == 1
    assert found["outside"] == 0
    # Weights of 3 x 4 and a bias of 3, float32.
    assert found["constants"] == 4 * (12 + 3)
    assert found["memory"] > 0


def stored_twice(texts: Record) -> dict[str, str]:
    """Return a golden whose program keeps its first named data under a second key as well."""
    begins = texts.texts()["pte"].index('data "named_data ')
    blob = "".join(texts.texts()["pte"][begins:].splitlines(keepends=True)[:2])
    program = texts.texts()["pte"].replace(blob, blob + blob.replace('"named_data ', '"named_data again_'))
    return with_texts(texts, {"pte": program})


def test_constants_that_are_stored_twice_are_counted(texts: Record, snapshot: SnapshotAssertion) -> None:
    assert measured(texts.inventory)["duplicated"] == 0
    # Weights of 3 x 4, float32.
    twice = stored_twice(texts)
    stored = measured(twice.inventory)["duplicated"]
    assert stored in (4 * 12, 4 * 3)
    assert screen(directed(texts.inventory, twice.inventory), {f" {stored} ": " STORED "}) == snapshot


@pytest.mark.parametrize(
    ("version", "cells"), [("1.1.0", 9), ("1.2.0", 9), ("1.3.1", 0), ("1.4.1", 0), ("1.5.1", 0)]
)
def test_named_data_was_stored_twice_up_to_a_release(version: str, cells: int) -> None:
    """Issue #19020: three times the memory after an upgrade."""
    found = {}
    folder = REPOSITORY / "goldens" / version
    for cell in golden.recorded(folder):
        # The embedding and the head of this one share their weight, and it is stored for each on all releases.
        if (
            cell.target in ("xnnpack-fp32", "xnnpack-int8", "xnnpack-dynamic")
            and cell.case != "trained-language-model"
        ):
            texts = golden.read(golden.file_of(folder, cell))
            if PROGRAM in texts.texts():
                found[str(cell)] = measured(texts.inventory)["duplicated"]
    assert len([cell for cell, twice in found.items() if twice]) == cells


def accurate(texts: Record, *accuracies: str) -> dict[str, str]:
    """Return a golden with an accuracy for each output."""
    lines = "".join(f"accuracy {at}: {text}\n" for at, text in enumerate(accuracies))
    manifest = texts.texts()[MANIFEST].replace(
        f"numerics: {Numerics().text()}\n", f"numerics: {Numerics().text()}\n{lines}"
    )
    return with_texts(texts, {MANIFEST: manifest})


def test_accuracy_has_a_direction_from_half_a_decibel_on(texts: Record, snapshot: SnapshotAssertion) -> None:
    one = accurate(texts, "sqnr 41.3 dB, cosine 0.99996", "sqnr 30.0 dB, cosine 0.99900")
    other = accurate(texts, "sqnr 35.2 dB, cosine 0.99900", "sqnr 30.5 dB, cosine 0.99910")
    assert screen(directed(one.inventory, other.inventory)) == snapshot(name="worse")
    assert screen(directed(other.inventory, one.inventory)) == snapshot(name="better")
    assert not list(directed(texts.inventory, one.inventory))
    assert of_verdict(verdict.changed(CELL, Difference(one, other))) == snapshot(name="changed")
    assert [str(edit) for edit in Difference(one, other).edits] == ["manifest: accuracy 0"]


def test_drift_says_where_accuracy_fell_most(texts: Record, snapshot: SnapshotAssertion) -> None:
    one, other = Cell("tosa-int", "one"), Cell("tosa-int", "other")

    def readings(*ratios: float) -> dict[Cell, Inventory]:
        made = (accurate(texts, f"sqnr {ratio} dB, cosine 0.99") for ratio in ratios)
        return {cell: each.inventory for cell, each in zip((one, other), made, strict=True)}

    drift = Drift.from_inventories(("1", readings(41.3, 30.0)), ("2", readings(20.0, 30.4)))
    assert screen(drift.markdown()) == snapshot


def exceeding(found: Iterable[Exceeded]) -> str:
    """Return what is said of each budget, without the way out."""
    return screen([*lines(OverBudget(tuple(found), "FILE"))][:-1])


def test_a_budget_of_accuracy_is_the_least_that_there_may_be(
    texts: Record, snapshot: SnapshotAssertion
) -> None:
    made = accurate(
        texts, "sqnr 35.2 dB, cosine 0.99900", "sqnr 9.0 dB, cosine 0.9; example 30.5 dB", "3 of 4 equal"
    )
    assert exceeding(over(made, [("*", {"sqnr": 31})])) == snapshot
    assert not list(over(made, [("*", {"sqnr": 30.5})]))
    # What is not quantized has none.
    assert not list(over(texts, [("*", {"sqnr": 31})]))


def test_what_became_worse_comes_before_what_became_better(snapshot: SnapshotAssertion) -> None:
    before = Inventory(None, size=1000, memory=(400,))
    before.delegates["XnnpackBackend"] = 2
    after = Inventory(None, size=900, memory=(1200,))
    after.delegates["XnnpackBackend"] = 1
    after.outside.update({"aten.relu.default": 2})
    assert screen(directed(before, after)) == snapshot
    assert not list(directed(before, before))
    assert not list(directed(before, Inventory("lower: no")))


@pytest.mark.parametrize(
    "change",
    [{}, {"outside": Counter({"aten.clone.default": 1})}, {"instructions": Counter()}],
    ids=["the same", "more", "no instructions"],
)
def test_less_is_better_only_where_the_same_operators_are_outside(
    change: dict[str, Counter[str]], snapshot: SnapshotAssertion
) -> None:
    """A copy that correctness needs takes memory as well."""
    before = Inventory(None, memory=(320,), instructions=Counter({"aten::copy_": 1}))
    assert screen(directed(before, replace(before, memory=(288,), **change))) == snapshot


def test_planned_memory_is_told_by_arena_where_there_are_several(snapshot: SnapshotAssertion) -> None:
    assert screen(directed(Inventory(None, memory=(64,)), Inventory(None, memory=(64, 32)))) == snapshot


def test_a_change_begins_with_them(texts: Record, snapshot: SnapshotAssertion) -> None:
    before = measured(texts.inventory)["memory"]
    assert of_verdict(verdict.changed(CELL, Difference(texts, planned(texts, 3 * before)))) == snapshot


@pytest.mark.parametrize(
    ("pattern", "most", "is_over"),
    [
        ("xnnpack-*/alpha", 99, True),
        ("xnnpack-*/alpha", 100, False),
        ("xnnpack-*/alpha", 10**9, False),
        ("tosa-*/alpha", 99, False),
    ],
    ids=["over", "at it", "under", "of other cells"],
)
def test_a_budget_fails_in_one_direction_only(
    texts: Record, pattern: str, most: int, is_over: bool, snapshot: SnapshotAssertion
) -> None:
    decided = Decisions(stated=(Decision(BUDGET, limits=BudgetLimits(memory=most), cells=(pattern,)),))
    found = list(over(planned(texts, 100), decided.budgets(CELL)))
    assert bool(found) == is_over
    assert exceeding(found) == snapshot
