"""Quantities with a direction: in the message of a change, and against budgets."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.diff.drift import Drift
from executorch_goldens.diff.edits import edits
from executorch_goldens.diff.quantities import directions
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.goldens.decisions import BUDGET, Decision, Decisions
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.quantities import BudgetLimits, measured, over
from executorch_goldens.goldens.record import MANIFEST, PROGRAM, Record
from executorch_goldens.judging import verdict
from tests import REPOSITORY
from tests.conftest import Artifacts
from tests.support.making import with_texts

CELL = Cell("xnnpack-fp32", "alpha")


@pytest.fixture
def texts(artifacts: Artifacts) -> Record:
    return rendering.render(artifacts["steady"][0], rendering.MadeWith({}, ["seed0-heap0"], "equal"))


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


def test_constants_that_are_stored_twice_are_counted(texts: Record) -> None:
    assert measured(texts.inventory)["duplicated"] == 0
    # Weights of 3 x 4, float32.
    twice = stored_twice(texts)
    assert measured(twice.inventory)["duplicated"] in (4 * 12, 4 * 3)
    (line,) = (line for line in directions(texts.inventory, twice.inventory) if "more than once" in line)
    assert re.fullmatch(r"worse: 0 -> \d+ bytes of constants that are stored more than once", line)


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
    manifest = texts.texts()[MANIFEST].replace("numerics: equal\n", f"numerics: equal\n{lines}")
    return with_texts(texts, {MANIFEST: manifest})


def test_accuracy_has_a_direction_from_half_a_decibel_on(texts: Record) -> None:
    one = accurate(texts, "sqnr 41.3 dB, cosine 0.99996", "sqnr 30.0 dB, cosine 0.99900")
    other = accurate(texts, "sqnr 35.2 dB, cosine 0.99900", "sqnr 30.5 dB, cosine 0.99910")
    worse = "accuracy 0: sqnr 41.3 dB, cosine 0.99996 -> sqnr 35.2 dB, cosine 0.99900"
    better = "accuracy 0: sqnr 35.2 dB, cosine 0.99900 -> sqnr 41.3 dB, cosine 0.99996"
    assert list(directions(one.inventory, other.inventory)) == [f"worse: {worse}"]
    assert list(directions(other.inventory, one.inventory)) == [f"better: {better}"]
    assert not list(directions(texts.inventory, one.inventory))
    found = verdict.changed(CELL, one, other)
    assert found.detail[0] == f"worse: {worse}"
    assert found.reason == "differs from its golden in manifest"
    assert [str(edit) for edit in edits(one, other)] == ["manifest: accuracy 0"]


def test_drift_says_where_accuracy_fell_most(texts: Record) -> None:
    one, other = Cell("tosa-int", "one"), Cell("tosa-int", "other")

    def readings(*ratios: float) -> dict[Cell, Inventory]:
        made = (accurate(texts, f"sqnr {ratio} dB, cosine 0.99") for ratio in ratios)
        return {cell: each.inventory for cell, each in zip((one, other), made, strict=True)}

    drift = Drift.from_inventories(("1", readings(41.3, 30.0)), ("2", readings(20.0, 30.4)))
    assert (
        "- SQNR of the worst output: lower by more than 0.5 dB in 1 cell of 2, most in tosa-int/one (41.3 -> 20.0 dB)"
        in drift.markdown()
    )


def test_a_budget_of_accuracy_is_the_least_that_there_may_be(texts: Record) -> None:
    made = accurate(
        texts, "sqnr 35.2 dB, cosine 0.99900", "sqnr 9.0 dB, cosine 0.9; example 30.5 dB", "3 of 4 equal"
    )
    (line,) = over(made, [("*", {"sqnr": 31})])
    assert line == "30.5 dB of SQNR, and 31 are the least in the budget (*: sqnr)"
    assert not list(over(made, [("*", {"sqnr": 30.5})]))
    # What is not quantized has none.
    assert not list(over(texts, [("*", {"sqnr": 31})]))


def test_what_became_worse_comes_before_what_became_better() -> None:
    before = Inventory(None, size=1000, memory=(400,))
    before.delegates["XnnpackBackend"] = 2
    after = Inventory(None, size=900, memory=(1200,))
    after.delegates["XnnpackBackend"] = 1
    after.outside.update({"aten.relu.default": 2})
    assert list(directions(before, after)) == [
        "worse: 0 -> 2 operators outside delegates: aten.relu.default +2",
        "worse: 400 -> 1,200 bytes of planned memory (3.00 times)",
        "worse: 0 -> 2 operators, in delegates and outside",
        "different: 1,000 -> 900 bytes of the program (0.90 times)",
        "different: 2 -> 1 delegates (0.50 times)",
    ]
    assert not list(directions(before, before))
    assert not list(directions(before, Inventory("lower: no")))


@pytest.mark.parametrize(
    "change", [{"outside": Counter({"aten.clone.default": 1})}, {"instructions": Counter()}]
)
def test_less_is_better_only_where_the_same_operators_are_outside(change: dict[str, Counter[str]]) -> None:
    """A copy that correctness needs takes memory as well."""
    before = Inventory(None, memory=(320,), instructions=Counter({"aten::copy_": 1}))
    after = replace(before, memory=(288,))
    assert list(directions(before, after)) == ["better: 320 -> 288 bytes of planned memory (0.90 times)"]
    lines = list(directions(before, replace(after, **change)))
    assert "different: 320 -> 288 bytes of planned memory (0.90 times)" in lines
    assert not any(line.startswith("better") for line in lines)


def test_planned_memory_is_told_by_arena_where_there_are_several() -> None:
    (line,) = directions(Inventory(None, memory=(64,)), Inventory(None, memory=(64, 32)))
    assert line == "worse: 64 -> 96 bytes of planned memory (1.50 times): by arena 64 -> 64 + 32"


def test_a_change_begins_with_them(texts: Record) -> None:
    before = measured(texts.inventory)["memory"]
    found = verdict.changed(CELL, texts, planned(texts, 3 * before))
    assert found.detail[0] == f"worse: {before:,} -> {3 * before:,} bytes of planned memory (3.00 times)"
    assert "pte" in found.reason
    assert any("pte" in line for line in found.detail[1:])


@pytest.mark.parametrize(
    ("pattern", "most", "lines"),
    [
        (
            "xnnpack-*/alpha",
            99,
            ["100 bytes of planned memory, and 99 are in the budget (xnnpack-*/alpha: memory)"],
        ),
        ("xnnpack-*/alpha", 100, []),
        ("xnnpack-*/alpha", 10**9, []),
        ("tosa-*/alpha", 99, []),
    ],
    ids=["over", "at it", "under", "of other cells"],
)
def test_a_budget_fails_in_one_direction_only(
    texts: Record, pattern: str, most: int, lines: list[str]
) -> None:
    decided = Decisions(stated=(Decision(BUDGET, limits=BudgetLimits(memory=most), cells=(pattern,)),))
    assert list(over(planned(texts, 100), decided.budgets(CELL))) == lines
