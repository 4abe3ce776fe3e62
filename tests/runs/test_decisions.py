"""Cells that fail or delegate nothing: recorded, and green, only where a person expects it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Artifact, Lowered
from executorch_goldens.goldens import decisions
from tests.conftest import Artifacts
from tests.runs.conftest import SEEDS, TARGETS, UPDATE, WHOLE
from tests.support.runner import Runner

BETA = "xnnpack-fp32/beta"
ONE = ("--cell", BETA)


def undelegated(made: Artifact) -> Artifact:
    """Return an artifact of a program that delegates nothing."""
    assert isinstance(made.result, Lowered)
    return replace(made, result=replace(made.result, delegates=()))


@pytest.mark.slow
def test_new_cells_that_fail_or_delegate_nothing_are_refused_with_the_line_to_write(
    runner: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    steady = artifacts["steady"][0]
    runner.zoo("zoo_of_kinds", "alpha", "beta", "gamma")
    runner.answers({"alpha": steady, "beta": artifacts["does-not-lower"], "gamma": undelegated(steady)})
    words = (*SEEDS, "--models", "zoo_of_kinds", "--cell", "xnnpack-fp32/*")
    for asked in ((), (UPDATE,)):
        finished = runner(*words, *asked)
        assert finished.code == pytest.ExitCode.TESTS_FAILED
        assert finished.printed() == snapshot
    assert runner.recorded() == {"xnnpack-fp32/alpha"}
    runner.expect(BETA)
    runner.expect("xnnpack-fp32/gamma", cause="")
    recorded = runner(*words, UPDATE)
    assert recorded.code == 0, recorded.output
    assert runner.recorded() == {"xnnpack-fp32/alpha", BETA, "xnnpack-fp32/gamma"}


def test_a_golden_that_begins_to_fail_is_no_golden_before_that_is_expected(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"*": artifacts["does-not-lower"]})
    before = recorded.files()
    words = (*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    finished = recorded(*words)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert finished.printed() == snapshot
    assert recorded.files() == before
    recorded.expect("tosa-fp/alpha")
    assert recorded(*words).code == 0


@pytest.mark.slow
def test_a_golden_that_nothing_expects_is_red_until_a_review_writes_its_expectation(
    recorded: Runner, snapshot: SnapshotAssertion
) -> None:
    (recorded.goldens / decisions.FILE).unlink()
    for asked in ((), (UPDATE,)):
        finished = recorded(*WHOLE, *asked)
        assert finished.code == pytest.ExitCode.TESTS_FAILED
        expected = {f"{target}/alpha": "stable" for target in TARGETS}
        assert finished.verdicts() == expected | {f"{target}/beta": "unexpected" for target in TARGETS}
        assert finished.printed() == snapshot
    assert decisions.update(recorded.goldens).written == len(TARGETS)
    finished = recorded(*WHOLE)
    assert finished.code == 0, finished.output
    assert set(finished.verdicts().values()) == {"stable"}


@pytest.mark.slow
def test_a_failure_that_lowers_now_is_changed_and_a_review_deletes_its_expectation(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"*": artifacts["steady"]})
    finished = recorded(*WHOLE, *ONE)
    assert finished.verdicts() == {BETA: "changed"}
    assert finished.printed() == snapshot
    assert recorded(*WHOLE, *ONE, UPDATE).code == 0
    assert recorded(*WHOLE, *ONE).code == 0
    assert (BETA, recorded.release) in decisions.update(recorded.goldens).gone


def test_a_file_that_cannot_be_read_ends_the_run(recorded: Runner) -> None:
    file = recorded.goldens / decisions.FILE
    file.write_text('\n[[decision]]\nwhat = "fails"\n')
    recorded(*WHOLE).refused(
        f"{file}: line 2: [[decision]] 1: ", "'fails' is none of failure, undelegated, known"
    )


def test_a_failure_of_another_cause_is_not_expected(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"*": artifacts["does-not-lower"]})
    decisions.write(recorded.goldens, [])
    recorded.expect("tosa-fp/alpha", cause="lower: ValueError: of another kind")
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    assert finished.printed() == snapshot


def test_decisions_that_are_superfluous_are_named_at_the_end_of_a_whole_run_and_fail_none(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers(
        {
            "alpha": artifacts["steady"],
            "beta": artifacts["does-not-lower"],
            "tosa-fp/alpha": artifacts["wrong"],
        }
    )
    for text in ("corrupt: it is shown", "corrupt: it is shown as well", "crashed: it is not shown"):
        recorded.know({"tosa-fp/alpha": text})
    # The target is there, and the case does not ask for it.
    recorded.know({"tosa-int16/alpha": "crashed: nothing is exported"})
    finished = recorded(*WHOLE)
    assert finished.code == 0, finished.output
    assert [line for line in finished.printed().splitlines() if "superfluous" in line] == snapshot
    assert "superfluous" not in recorded(*WHOLE, "--cell", "tosa-fp/alpha").output
