"""Goldens of a replayed run over two cases on all targets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Artifacts
from tests.support import replay
from tests.support.runner import Runner, made_once

TARGETS = ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")
UPDATE = "--snapshot-update"
SEEDS = ("--variations", "0,4")


#: Two cases, alpha and beta, on all targets.
WHOLE = (*SEEDS, "--models", "zoo_both")


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory, release: str, artifacts: Artifacts) -> Runner:
    """A runner with every golden of a run over `WHOLE` recorded."""

    def make(folder: Path) -> Runner:
        runner = Runner(folder, release)
        runner.zoo("zoo_both", "alpha", "beta")
        runner.answers({"alpha": artifacts["steady"], "beta": artifacts["does-not-lower"]})
        runner.expect(*(f"{target}/beta" for target in TARGETS))
        finished = runner(*WHOLE, UPDATE)
        assert finished.code == 0, finished.output
        assert set(finished.verdicts().values()) == {"new"}
        assert runner.recorded() == {f"{target}/{case}" for target in TARGETS for case in ("alpha", "beta")}
        return runner

    return made_once(tmp_path_factory, "recording", make)


@pytest.fixture
def recorded(recording: Runner, tmp_path: Path) -> Runner:
    """A runner of its own with the goldens of `recording`."""
    shutil.copytree(recording.folder, tmp_path / "own")
    # The zoo that a run sees is the one beside its answers.
    return Runner(tmp_path / "own", recording.release, {replay.VARIABLE: str(tmp_path / "own" / "answers")})


@pytest.fixture
def shrunk(recorded: Runner) -> Runner:
    """`recorded`, whose zoo has lost its case beta: its goldens are stale."""
    recorded.zoo("zoo_both", "alpha")
    return recorded
