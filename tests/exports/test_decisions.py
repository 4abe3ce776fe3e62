"""Failures of real exports as goldens: those of the repository's own files are none, others are a decision."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Artifact, Cell, Failure
from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import FAILURE, Decision, Decisions
from executorch_goldens.judging.comparison import JudgedCell
from executorch_goldens.judging.judge import Judge
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.updating import Updating
from executorch_goldens.settings import releases
from executorch_goldens.zoo import targets
from tests import REPOSITORY
from tests.exports.conftest import exported
from tests.support import partitioners
from tests.support.making import golden_of, outcomes
from tests.support.screens import of_verdict, screen

pytestmark = pytest.mark.usefixtures("own_flatc")

CELL = Cell("firm-fp32", "gate")


def made_by(function: str, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """Export for a target whose partitioner is made by a function of `tests.support.partitioners`."""
    by = f"tests.support.partitioners:{function}"
    own = replace(targets.TARGETS["xnnpack-fp32"], name=CELL.target, partitioner=by)
    monkeypatch.setattr(targets, "TARGETS", {**targets.TARGETS, own.name: own})
    made = exported(torch.nn.ReLU(), torch.ones(2, 3), target=own.name)
    assert isinstance(made.result, Failure)
    return made


def judged(
    root: Path, release: str, made: Artifact, snapshot: SnapshotAssertion, *stated: Decision
) -> JudgedCell:
    """Judge two equal exports, asked to record them."""
    decided = Decisions(root, release, stated)
    judge = Judge(
        root / release, decided, OwnFiles.in_repository(REPOSITORY), Updating(new=True, changed=True)
    )
    return judge.judge(CELL, outcomes(made, made, cell=CELL), releases.load().release(release), snapshot)


def test_an_error_of_an_own_file_is_no_golden_whatever_is_expected(
    tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    made = made_by("raising", monkeypatch)
    cause = decisions.cause_of(golden_of(made.result))
    expected = Decision(FAILURE, cause=cause, releases=(release,), cells=(str(CELL),))
    found = judged(tmp_path, release, made, snapshot, expected).verdict
    assert (found.name, found.recorded, found.recordable) == ("failed", False, False)
    line = inspect.getsourcelines(partitioners.raising)[1] + 2
    file = Path(partitioners.__file__).relative_to(REPOSITORY)
    assert screen(of_verdict(found), {f"{file}, line {line}": "PLACE"}) == snapshot
    assert not list(tmp_path.rglob("*.txt"))


def test_a_function_that_returns_no_partitioner_is_an_error_and_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(targets.TargetError, match=r"partitioners:listed returns a list, and no Partitioner$"):
        made_by("listed", monkeypatch)


def test_an_error_that_executorch_raises_for_an_own_mistake_is_a_decision(
    tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """A partitioner that gives nothing: AttributeError in ExecuTorch, which was recorded as green."""
    made = made_by("mistaken", monkeypatch)
    found = judged(tmp_path, release, made, snapshot).verdict
    assert (found.name, found.recorded) == ("new", False)
    assert of_verdict(found) == snapshot
    cause = decisions.cause_of(golden_of(made.result))
    assert found.refusal.decision.cause == cause
    expected = Decision(FAILURE, cause=cause, releases=(release,), cells=(str(CELL),))
    found = judged(tmp_path, release, made, snapshot, expected).verdict
    assert (found.name, found.recordable, found.refusal) == ("new", True, None)
