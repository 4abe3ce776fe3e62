"""Agreement of artifacts: in all, in all but order, or not; casualties and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import (
    EXPORTED,
    STAGE,
    Artifact,
    Casualty,
    Failure,
    Killed,
    Lost,
    Lowered,
    OfHarness,
    OutOfMemory,
    PassRun,
    Sample,
    Tensor,
)
from executorch_goldens.goldens.decisions import KNOWN, Decision, Decisions
from executorch_goldens.goldens.record import FAILURE
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.exports import Exports
from executorch_goldens.settings.releases import load
from tests.support.making import (
    CELL,
    DUPLICATE_OUTPUTS,
    GRAPH,
    PROGRAM,
    RENUMBERED,
    WRONG_CAT,
    artifact,
    failure,
    judged,
    lowered,
    outcome,
    outcomes,
    tosa,
)
from tests.support.screens import of_verdict

LINES = GRAPH.splitlines(keepends=True)
REORDERED = "".join([LINES[0], LINES[3], LINES[4], LINES[1], LINES[2], LINES[5]])


def test_artifacts_that_agree_are_handed_on() -> None:
    made = outcomes(lowered(), lowered(), lowered())
    assert verdict.objection(CELL, made) is None
    assert Exports(made).agreed.result == lowered()


@pytest.mark.parametrize("other", [RENUMBERED, REORDERED], ids=["renumbered", "reordered"])
def test_what_differs_in_order_or_numbering_is_order_only(other: str, snapshot: SnapshotAssertion) -> None:
    found = judged(lowered(), lowered(other, pte=b"other"), lowered())
    assert of_verdict(found) == snapshot


@pytest.mark.parametrize(
    "other",
    [
        lowered(GRAPH.replace("%y", "%x")),
        lowered(GRAPH.replace("target=delegate", "target=portable", 1)),
        lowered(GRAPH.replace("num_users=1", "num_users=2", 1)),
        lowered(pte=b"another program"),
        lowered(GRAPH, tosa(WRONG_CAT)),
        failure(),
    ],
    ids=["argument", "operator", "number", "program only", "delegate", "failure"],
)
def test_what_differs_in_content_is_unstable(other: Lowered | Failure, snapshot: SnapshotAssertion) -> None:
    found = judged(lowered(), other)
    assert of_verdict(found) == snapshot


def test_a_dtype_is_content_though_it_ends_in_a_number() -> None:
    one, other = GRAPH + "# int8 int8 fp32", GRAPH + "# int8 int32 fp32"
    assert judged(lowered(one), lowered(other)).name == "unstable"


def test_one_program_that_differs_beside_others_that_are_reordered_is_unstable(
    snapshot: SnapshotAssertion,
) -> None:
    found = judged(lowered(), lowered(REORDERED), lowered(REORDERED, pte=b"other"))
    assert of_verdict(found) == snapshot


def of_values(expected: float, actual: float) -> Lowered:
    sides = (Tensor.from_array(np.full(2, value, np.float32)) for value in (expected, actual))
    one, other = sides
    return lowered(pte=str(expected).encode(), samples=(Sample("example", (one,), (other,)),))


@pytest.mark.parametrize(
    "made",
    [
        [
            replace(lowered(pte=each.encode()), model=(f"forward 0.weight float32[2] sha256 {each}",))
            for each in "ab"
        ],
        [
            artifact(of_values(value, value), PassRun(STAGE, EXPORTED, str(value), True))
            for value in (1.0, 2.0)
        ],
    ],
    ids=["weights", "model"],
)
def test_a_case_that_gives_other_weights_each_time_is_the_cause_and_no_pass_is(
    made: list[Lowered | Artifact], snapshot: SnapshotAssertion
) -> None:
    found = compare(CELL, outcomes(*made), None, load().release("1.4.1")).verdict
    assert (found.name, found.blames_case) == ("unstable", True)
    assert of_verdict(found) == snapshot


def test_less_sqnr_is_offered_to_no_wrong_program_and_none_below_the_noise(
    snapshot: SnapshotAssertion,
) -> None:
    unnamed = ("which quantization loses it is not looked for",)
    wrong = replace(of_values(1.0, 2.0), lost=Lost(0, 12.5, 20.0, unnamed, named=False))
    right = replace(wrong, samples=of_values(1.0, 1.0).samples)
    below = replace(right, lost=Lost(0, -106.0, 20.0, unnamed, named=False))
    assert of_verdict(*map(judged, (wrong, right, below))) == snapshot


def test_a_model_that_is_another_without_its_quantizations_is_no_quantization_to_change_or_to_accept(
    snapshot: SnapshotAssertion,
) -> None:
    lines = ("without its quantizations output 0 has 1.5 dB against the float model; conv2d",)
    lost = Lost(0, 1.4, 20.0, lines, named=False, changed="aten.conv2d.default conv2d of conv")
    found = judged(replace(of_values(1.0, 1.0), lost=lost))
    assert of_verdict(found) == snapshot


def test_failures_that_differ_are_unstable_and_both_are_shown(snapshot: SnapshotAssertion) -> None:
    found = judged(failure("with a"), failure("with b"))
    assert of_verdict(found) == snapshot


def test_a_long_difference_is_cut_and_says_by_how_much(snapshot: SnapshotAssertion) -> None:
    assert of_verdict(judged(lowered("a\n" * 100), lowered("b\n" * 100))) == snapshot


def test_real_exports_are_told_apart(artifacts: Mapping[str, Sequence[Artifact]]) -> None:
    def name_of(case: str) -> str:
        return judged(*(artifact.result for artifact in artifacts[case])).name

    assert name_of("set-of-strings") == "order-only"
    assert name_of("hashed-constant") == "unstable"
    assert name_of("wrong") == "corrupt"


@pytest.mark.parametrize(
    "lost",
    [Killed("SIGSEGV", tail=("last words",)), OutOfMemory(None, tail=("last words",))],
    ids=["killed", "out of memory"],
)
def test_one_casualty_is_the_verdict_of_the_cell(lost: Casualty, snapshot: SnapshotAssertion) -> None:
    assert of_verdict(judged(lowered(), lost, lowered(REORDERED))) == snapshot


def test_a_cell_that_the_harness_itself_failed_on_is_no_known_defect_and_cannot_be_recorded() -> None:
    release = load().release("1.4.1")
    defect = Decision(KNOWN, "crashed", why="an issue", releases=(release.version,), cells=(str(CELL),))
    decided = Decisions(Path(), release.version, (defect,))
    lost: tuple[tuple[Casualty, bool], ...] = (
        (Killed("SIGSEGV"), False),
        (OfHarness("run", "KeyError: 'x'", "somewhere"), True),
    )
    for casualty, own in lost:
        found = compare(CELL, [outcome(casualty, CELL)], None, release, decided).verdict
        assert (found.name, found.is_of_harness) == ("crashed", own)
        assert (bool(found.known), found.accepted, found.recordable) == (not own, not own, False)


@pytest.mark.parametrize("stage", ["export", "quantize", "lower", "emit"])
def test_a_failure_to_lower_is_an_artifact(stage: str) -> None:
    assert verdict.objection(CELL, outcomes(failure(stage=stage))) is None


@pytest.mark.parametrize(("stage", "name"), [("model", "failed"), ("run", "corrupt")])
def test_a_case_or_a_program_that_does_not_run_is_none(
    stage: str, name: str, snapshot: SnapshotAssertion
) -> None:
    found = judged(failure("no\nmore", stage))
    assert of_verdict(found) == snapshot


def test_a_program_without_delegates_that_does_not_run_says_so_too(snapshot: SnapshotAssertion) -> None:
    bare = replace(failure(stage="run"), made=lowered())
    delegated = replace(bare, made=lowered(GRAPH, tosa(WRONG_CAT)))
    assert of_verdict(judged(bare), judged(delegated)) == snapshot


def test_programs_that_do_not_run_and_differ_are_unstable(snapshot: SnapshotAssertion) -> None:
    def broken(payload: bytes, pte: bytes = PROGRAM) -> Failure:
        return replace(failure(stage="run"), made=lowered(GRAPH, tosa(payload), pte=pte))

    found = judged(broken(DUPLICATE_OUTPUTS), broken(WRONG_CAT))
    assert of_verdict(found) == snapshot
    assert judged(broken(WRONG_CAT), broken(WRONG_CAT, PROGRAM + b"more")).name == "unstable"
    assert judged(broken(WRONG_CAT), broken(WRONG_CAT)).name == "corrupt"


#: What ExecuTorch 1.3.1 raised of one model under two hash seeds: its delegates came in another order.
CROPPED = """Expected padding values to be non-negative, got 1 and -1

While executing %aten_pad_default{} : [num_users=1] = call_function[target=aten.pad.default](args = (%{},))
Original traceback:
  File "…/zoo.py", line …, in {}

Use tlparse to see full graph. (TOSA op: PAD)"""


def test_failures_of_one_kind_at_different_nodes_are_one_failure_whichever_variation_comes_first(
    snapshot: SnapshotAssertion,
) -> None:
    one = failure(CROPPED.format("", "x", "forward"))
    other = replace(failure(CROPPED.format("_2", "aten_mul_tensor", "crop")), function="elsewhere")
    release = load().release("1.4.1")
    for made in ((one, other), (other, one)):
        assert verdict.objection(CELL, outcomes(*made)) is None
        found = compare(CELL, outcomes(*made), None, release)
        assert of_verdict(found.verdict) == snapshot(name="new")
        assert found.record.texts()[FAILURE] == snapshot(name="recorded")
        for each in (one, other):
            # A run of fewer variations, which fail at one node.
            assert compare(CELL, outcomes(each, each), found.record, release).verdict.name == "stable"


def test_a_failure_that_goes_through_other_functions_than_its_golden_is_changed() -> None:
    release = load().release("1.4.1")
    reviewed = compare(CELL, outcomes(failure(CROPPED.format("", "x", "forward"))), None, release).record
    renumbered, elsewhere = (
        failure(CROPPED.format("_3", "x", "forward")),
        failure(CROPPED.format("", "x", "crop")),
    )
    assert compare(CELL, outcomes(renumbered), reviewed, release).verdict.name == "stable"
    assert compare(CELL, outcomes(elsewhere), reviewed, release).verdict.name == "changed"


def test_a_failure_beside_programs_is_named_first_and_then_who_lowers(snapshot: SnapshotAssertion) -> None:
    found = judged(lowered(), failure("no such operator"), lowered())
    assert found.name == "unstable"
    unrun = replace(failure("no memory", stage="run"), made=lowered())
    assert of_verdict(found, judged(lowered(), unrun, failure("no such operator"))) == snapshot
