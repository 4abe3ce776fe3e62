"""Runs of the core and of all cells."""

from __future__ import annotations

import shutil
import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.running import core
from tests.conftest import Artifacts
from tests.runs.conftest import TARGETS, WHOLE
from tests.support.making import with_graph
from tests.support.runner import Finished, Runner


@pytest.fixture
def with_core(recorded: Runner) -> Runner:
    """`recorded`, with a core of one cell."""
    (recorded.root / core.FILE).write_text("# A core.\ntosa-fp/alpha  target tosa-fp\n")
    return recorded


def test_a_run_of_the_core_says_how_many_cells_it_left_out(
    with_core: Runner, snapshot: SnapshotAssertion
) -> None:
    finished = with_core(*WHOLE)
    assert finished.code == 0, finished.output
    assert finished.verdicts() == {"tosa-fp/alpha": "stable"}
    assert finished.printed() == snapshot
    whole = with_core(*WHOLE, "--tier", "full")
    assert len(whole.verdicts()) == 8
    assert "not run" not in whole.output


@pytest.mark.slow
def test_the_core_takes_two_variations_by_default_and_all_cells_four(with_core: Runner) -> None:
    models = WHOLE[WHOLE.index("--models") :][:2]
    assert "; 2 variations\n" in with_core(*models).output
    assert "; 4 variations\n" in with_core(*models, "--tier", "full").output
    assert "; 4 variations\n" in with_core(*models, "--variations", "full").output


#: The core of `core_of_six`.
SIX = tuple(f"{target}/{case}" for case in ("alpha", "beta") for target in TARGETS[:3])
MODELS = WHOLE[WHOLE.index("--models") :][:2]
#: A run that names its toolchain.
NAMED = (*MODELS, f"--toolchain={sys.executable}")


@pytest.fixture
def core_of_six(recorded: Runner) -> Runner:
    """`recorded`, with a core of six cells, run with what are taken for the packages of a release."""
    (recorded.root / core.FILE).write_text("".join(f"{cell}  target\n" for cell in SIX))
    return recorded


def exported(finished: Finished) -> dict[str, int]:
    """Return the number of exports of each cell."""
    return {cell: len(row["variations"]) for cell, row in finished.rows.items()}


def test_a_cell_of_a_release_is_exported_once_if_that_is_its_golden(
    core_of_six: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    answers = {"alpha": artifacts["steady"][0], "beta": artifacts["does-not-lower"], "declared": True}
    core_of_six.answers(answers)
    finished = core_of_six(*NAMED)
    assert finished.code == 0, finished.output
    assert exported(finished) == dict.fromkeys(SIX, 1)
    assert finished.printed() == snapshot


@pytest.mark.slow
def test_a_cell_of_anything_else_is_exported_under_every_variation(
    core_of_six: Runner, artifacts: Artifacts
) -> None:
    answers = {"alpha": artifacts["steady"][0], "beta": artifacts["does-not-lower"], "declared": True}
    core_of_six.answers(answers)
    for words in (("--patches", "none"), ("--variations", "quick"), ("--tier", "full")):
        assert min(exported(core_of_six(*NAMED, *words)).values()) > 1, words
    core_of_six.answers({**answers, "declared": False})
    assert set(exported(core_of_six(*NAMED)).values()) == {2}


def test_a_cell_that_is_not_its_golden_is_exported_under_every_variation(
    core_of_six: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    golden, *_ = artifacts["steady"]
    other = with_graph(golden, "another graph\n")
    core_of_six.know({SIX[2]: "corrupt: nothing"})
    answers = {"alpha": golden, "beta": artifacts["does-not-lower"], "declared": True}
    core_of_six.answers({**answers, SIX[0]: (golden, other), SIX[1]: other})
    finished = core_of_six(*NAMED)
    assert finished.verdicts()[SIX[0]] == "unstable"
    assert finished.verdicts()[SIX[1]] == "changed"
    assert exported(finished) == dict.fromkeys(SIX, 1) | dict.fromkeys(SIX[:3], 2)
    assert finished.printed() == snapshot


def test_once_three_cells_differ_all_that_are_left_are_exported_under_every_variation(
    core_of_six: Runner, artifacts: Artifacts
) -> None:
    golden, *_ = artifacts["steady"]
    other = with_graph(golden, "another graph\n")
    core_of_six.answers({"alpha": other, "beta": artifacts["does-not-lower"], "declared": True})
    finished = core_of_six(*NAMED)
    judged = list(finished.verdicts().items())
    third = [number for number, (_, name) in enumerate(judged) if name == "changed"][2]
    assert [exported(finished)[cell] for cell, _ in judged[third:]] == [2] * (6 - third)


@pytest.mark.slow
def test_only_a_full_run_knows_stale_goldens(with_core: Runner) -> None:
    shutil.copy(with_core.root / "tosa-fp/alpha.txt", with_core.root / "tosa-fp/gone.txt")
    assert with_core(*WHOLE).code == 0
    assert with_core(*WHOLE, "--tier", "full").code == pytest.ExitCode.TESTS_FAILED


def test_cells_that_are_not_in_the_core_are_refused(with_core: Runner) -> None:
    asked = (*WHOLE, "--tier", "core", "--cell", "tosa-fp/beta")
    with_core(*asked).refused("none of the cells chosen is in the core", "--tier full")


def test_the_core_of_a_zoo_that_has_none_is_refused_with_the_command(recorded: Runner) -> None:
    recorded(*WHOLE, "--tier", "core").refused(core.FILE, core.UPDATE)
