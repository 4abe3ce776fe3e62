"""Exports without the blamed pass: what they prove, and when they are made."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import PassRun
from executorch_goldens.decode import DecodeError
from executorch_goldens.results import proposals
from executorch_goldens.sweep.sweep import SweepError
from tests.support.making import GRAPH, MISWIRED, RENUMBERED, artifact, failure, lowered
from tests.support.runner import Runner

FOLD = PassRun("arm backend", "Fold", "a", True, start=1)
IDLE = PassRun("arm backend", "Decompose", "a", False, start=2)
ACTS = replace(IDLE, fingerprint="b", changed=True)
OTHERWISE = replace(ACTS, fingerprint="c")


#: A recorded golden, a pass's different result, and the same in another order.
SOUND = artifact(lowered(GRAPH), FOLD, IDLE)
CHANGED = artifact(lowered(GRAPH.replace("%y", "%x")), FOLD, ACTS)
CORRUPT = artifact(MISWIRED, FOLD, ACTS)
ORDERS = (artifact(lowered(GRAPH), FOLD, ACTS), artifact(lowered(RENUMBERED, pte=b"other"), FOLD, OTHERWISE))

#: A command's first words, but for the zoo.
SEEDS = ("--cell", "tosa-fp/*", "--variations", "0,4")


@pytest.fixture
def golden(runner: Runner) -> Runner:
    """A golden of `SOUND` for alpha and for beta."""
    runner.answers({"*": SOUND})
    # It is made up, and delegates nothing.
    runner.expect("tosa-fp/*", cause="")
    finished = runner("--models", runner.zoo("zoo", "alpha", "beta"), *SEEDS, "--snapshot-update")
    assert set(finished.verdicts().values()) == {"new"}, finished.output
    return runner


def proven(runner: Runner) -> dict[str, str]:
    """Return the proofs by exports without a pass in the last run, by cell."""
    found = proposals.find(runner.folder / "sweeps")
    return {str(proposal.cell): proposal.proof for proposal in found if proposal.proof}


def said(runner: Runner, made: object, without: object, *options: str) -> list[str]:
    """Return the proofs of a run, and check that each is printed with its cause."""
    runner.answers({"*": made, "without": {"*": without}})
    finished = runner("--models", "zoo", *SEEDS, *options)
    found = proven(runner)
    printed = re.findall("^.*: without it .*$", finished.output, re.MULTILINE)
    assert sorted(printed) == sorted(f"cause 1: {proof} ({cell})" for cell, proof in found.items())
    return list(found.values())


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(CHANGED, marks=pytest.mark.slow),
        CORRUPT,
        pytest.param(ORDERS, marks=pytest.mark.slow),
    ],
    ids=["changed", "corrupt", "order-only"],
)
def test_a_pass_without_which_the_artifact_equals_the_golden_is_the_cause(
    golden: Runner, made: object, snapshot: SnapshotAssertion
) -> None:
    # The second cell blames the same pass.
    assert said(golden, made, SOUND) == snapshot


def test_a_pass_without_which_an_artifact_is_right_is_the_cause(
    golden: Runner, snapshot: SnapshotAssertion
) -> None:
    assert said(golden, CORRUPT, CHANGED) == snapshot


def test_a_pass_without_which_the_variations_agree_is_the_cause(
    golden: Runner, snapshot: SnapshotAssertion
) -> None:
    assert said(golden, ORDERS, CHANGED) == snapshot


@pytest.mark.parametrize(
    ("made", "without"),
    [
        (CHANGED, artifact(lowered(GRAPH.replace("%x", "%y")), FOLD)),
        pytest.param(CHANGED, replace(SOUND, result=failure()), marks=pytest.mark.slow),
        pytest.param(CORRUPT, CORRUPT, marks=pytest.mark.slow),
        pytest.param(ORDERS, ORDERS, marks=pytest.mark.slow),
    ],
    ids=["changed otherwise", "breaks", "as wrong", "disagree as well"],
)
def test_what_proves_nothing_is_not_said(golden: Runner, made: object, without: object) -> None:
    assert said(golden, made, without) == []


def test_a_pass_is_tried_on_the_next_cell_where_one_proves_nothing(
    golden: Runner, snapshot: SnapshotAssertion
) -> None:
    golden.answers({"*": CORRUPT, "without": {"alpha": CORRUPT, "beta": CHANGED}})
    finished = golden("--models", "zoo", *SEEDS)
    assert proven(golden).keys() == {"tosa-fp/beta"}
    assert finished.printed() == snapshot


def test_a_pass_is_tried_on_corrupt_cells_first(golden: Runner, snapshot: SnapshotAssertion) -> None:
    golden.answers({"alpha": CHANGED, "beta": CORRUPT, "without": {"alpha": SOUND, "beta": SOUND}})
    golden("--models", "zoo", *SEEDS)
    assert proven(golden)["tosa-fp/beta"] == snapshot


def test_no_cell_is_exported_without_a_pass_where_that_is_not_wanted(golden: Runner) -> None:
    assert said(golden, CHANGED, SOUND, "--explain", "off") == []


@pytest.mark.slow
def test_a_real_pass_that_swaps_operands_is_the_cause(runner: Runner) -> None:
    asked = ("--models", "tests.support.zoo_omission", "--cell", "xnnpack-fp32/plus", "--variations", "0,4")
    recorded = runner(*asked, "--patches", "none", "--snapshot-update")
    assert recorded.code == 0, recorded.output
    finished = runner(*asked, "--patches", "swapped-operands")
    row = finished.rows["xnnpack-fp32/plus"]
    assert (row["verdict"], row["divergence"]["name"]) == ("changed", "RemoveGetItemPass"), finished.output
    assert proven(runner) == {"xnnpack-fp32/plus": "without it the artifact equals the golden"}


@pytest.mark.parametrize(
    "error",
    [
        SweepError("cannot be run"),
        pytest.param(KeyError("key"), marks=pytest.mark.slow),
        pytest.param(DecodeError("tosa", 0, "odd"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("diagnosis", ["without", "again"])
def test_a_diagnosis_that_fails_changes_no_verdict_and_the_run_goes_on(
    golden: Runner, diagnosis: str, error: Exception, snapshot: SnapshotAssertion
) -> None:
    golden.answers({"*": ORDERS, diagnosis: {"*": error}})
    finished = golden("--models", "zoo", *SEEDS)
    assert finished.verdicts() == {"tosa-fp/alpha": "order-only", "tosa-fp/beta": "order-only"}
    assert finished.printed() == snapshot
    assert "INTERNALERROR" not in finished.output
