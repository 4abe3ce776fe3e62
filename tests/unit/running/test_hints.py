"""Advice in the messages of corrupt cells."""

from __future__ import annotations

import math
import tomllib

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import plugins
from executorch_goldens.artifact import Cell
from executorch_goldens.goldens.findings import (
    ChangedModel,
    Deviated,
    Fails,
    NowFails,
    TensorType,
    UnsteadyCase,
    WrongValues,
)
from executorch_goldens.judging.rightness import Excess
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.hints import unpatched, ways_out
from executorch_goldens.settings import releases
from tests.support.screens import screen
from tests.support.verdicts import verdict

CELL = Cell("tosa-int", "some-case")
FLOAT, XNNPACK, BUILT = (Cell(target, "a") for target in ("tosa-fp", "xnnpack-fp32", "built"))


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What plugins propose is theirs."""
    monkeypatch.setattr(plugins, "load", dict)


def lines(excess: Excess | None, zoo: bool = True, name: str = "corrupt") -> list[str]:
    return list(ways_out(verdict(name, cell=CELL, excess=excess), "1.4.1", zoo))


def test_a_small_difference_names_the_place_of_a_tolerance_and_the_number(
    snapshot: SnapshotAssertion,
) -> None:
    assert screen(lines(Excess(0.013, ("example", "zeros"), ("drawn",)))) == snapshot


def test_a_tolerance_is_not_for_what_is_wrong_outside_of_the_delegates() -> None:
    assert lines(Excess(0.013, ("example", "zeros"), ("drawn",), is_outside=True)) == []


@pytest.mark.parametrize("target", ["tosa-int", "tosa-fp+int"])
def test_the_lines_that_a_message_gives_can_be_written_where_it_says(target: str) -> None:
    judged = verdict("corrupt", cell=Cell(target, "some-case"), excess=Excess(3e-05, ("example",), ()))
    line = next(ways_out(judged, "1.4.1", zoo=True))
    assert tomllib.loads(line.partition(" does: ")[2].partition(" under")[0]) == {target: 3e-05}


@pytest.mark.parametrize("bound", [0.8, math.inf])
def test_a_large_difference_is_not_to_be_tolerated(bound: float, snapshot: SnapshotAssertion) -> None:
    assert screen(lines(Excess(bound, ("example",), ()))) == snapshot


@pytest.mark.parametrize("right", [("example",), ("example", "drawn")], ids=["one", "two"])
def test_a_cell_that_is_right_on_the_example_can_be_run_on_less(
    right: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    assert screen(lines(Excess(0.8, ("zeros", "extremes"), right))) == snapshot


def test_a_test_that_exports_has_no_case_to_write_to(snapshot: SnapshotAssertion) -> None:
    assert screen(lines(Excess(0.013, ("zeros",), ("example",)), zoo=False)) == snapshot
    assert lines(None, zoo=False) == []


@pytest.mark.parametrize("name", ["unstable", "failed", "stable", "new"])
def test_other_verdicts_have_other_ways_out(name: str) -> None:
    assert lines(None, name=name) == []


#: What upstream's serializer says of #19152.
ALIASED = "Output node 'aten_permute_copy_default' is already in the inputs."
FLOAT32 = TensorType("float32", (1,))
CHANGED = ChangedModel("pointwise.weight", "SomePass", Deviated(FLOAT32, FLOAT32))
WRONG = WrongValues(0, "example", Deviated(FLOAT32, FLOAT32))


def fails(message: str) -> NowFails:
    return NowFails(Fails("RuntimeError", message, stage="lower"), ())


def named(release: str, judged: Verdict, asked: str = "none", applied: tuple[str, ...] = ()) -> str:
    """Return the hint about patches in a message; empty for none."""
    return "".join(unpatched(judged, releases.load().release(release), asked, applied))


@pytest.mark.parametrize(
    ("release", "judged"),
    [
        ("1.4.1", verdict("order-only", cell=FLOAT)),
        ("1.5.1", verdict("unstable", cell=CELL)),
        ("1.2.0", verdict("corrupt", WRONG, cell=CELL)),
        ("1.4.1", verdict("corrupt", CHANGED, cell=CELL)),
        ("1.4.1", verdict("failed", fails(ALIASED), cell=XNNPACK)),
    ],
    ids=["order-only", "unstable", "corrupt", "changed model", "failed"],
)
def test_what_a_declared_patch_is_for_names_it_its_issue_and_the_line_that_applies_it(
    release: str, judged: Verdict, snapshot: SnapshotAssertion
) -> None:
    assert screen(named(release, judged)) == snapshot


@pytest.mark.parametrize(
    "judged",
    [
        verdict("order-only", cell=XNNPACK),
        verdict("changed", cell=FLOAT),
        verdict("corrupt", WRONG, cell=FLOAT),
        verdict("corrupt", CHANGED, cell=XNNPACK),
        verdict("failed", fails("out of range"), cell=XNNPACK),
        verdict("unstable", cell=FLOAT, delegates=("TOSABackend",)),
        verdict("unstable", cell=BUILT, delegates=("XnnpackBackend", "XnnpackBackend")),
        verdict("unstable", UnsteadyCase(()), cell=BUILT, delegates=("TOSABackend", "TOSABackend")),
    ],
    ids=[
        *("other-backend", "other-verdict", "other-reason", "other-pass", "other-failure"),
        *("one-delegate", "other-delegates", "other-weights"),
    ],
)
def test_what_no_declared_patch_is_for_names_none(judged: Verdict) -> None:
    assert not named("1.4.1", judged)


def test_a_patch_that_is_applied_or_was_left_out_of_auto_is_no_way_out() -> None:
    judged = verdict("unstable", cell=FLOAT)
    assert not named("1.4.1", judged, "partition-order", ("partition-order",))
    assert not named("1.4.1", judged, "auto")
    assert named("1.4.1", judged, "folded-scales", ("folded-scales",))
    assert named("1.4.1", verdict("unstable", cell=BUILT, delegates=("TOSABackend",) * 2))
