"""Runs of the core and of all cells."""

from __future__ import annotations

import shutil

import pytest

from executorch_goldens.running import core
from tests.runs.conftest import WHOLE
from tests.support.runner import Runner


@pytest.fixture
def with_core(recorded: Runner) -> Runner:
    """`recorded`, with a core of one cell."""
    (recorded.root / core.FILE).write_text("# A core.\ntosa-fp/alpha  target tosa-fp\n")
    return recorded


def test_a_run_of_the_core_says_how_many_cells_it_left_out(with_core: Runner) -> None:
    finished = with_core(*WHOLE)
    assert finished.code == 0, finished.output
    assert finished.verdicts() == {"tosa-fp/alpha": "stable"}
    assert ": 1 stable; 7 not run (--tier full runs all); " in finished.output
    whole = with_core(*WHOLE, "--tier", "full")
    assert len(whole.verdicts()) == 8
    assert "not run" not in whole.output


@pytest.mark.slow
def test_the_core_takes_two_variations_by_default_and_all_cells_four(with_core: Runner) -> None:
    models = WHOLE[WHOLE.index("--models") :][:2]
    assert "; 2 variations: seed0-heap0, seed4-heap1\n" in with_core(*models).output
    assert "4 variations: " in with_core(*models, "--tier", "full").output
    assert "4 variations: " in with_core(*models, "--variations", "full").output


@pytest.mark.slow
def test_only_a_full_run_knows_stale_goldens(with_core: Runner) -> None:
    stale = with_core.root / "tosa-fp" / "gone"
    shutil.copytree(with_core.root / "tosa-fp" / "alpha", stale)
    assert with_core(*WHOLE).code == 0
    assert with_core(*WHOLE, "--tier", "full").code == pytest.ExitCode.TESTS_FAILED


def test_cells_that_are_not_in_the_core_are_refused(with_core: Runner) -> None:
    asked = (*WHOLE, "--tier", "core", "--cell", "tosa-fp/beta")
    with_core(*asked).refused("none of the cells chosen is in the core", "--tier full")


def test_the_core_of_a_zoo_that_has_none_is_refused_with_the_command(recorded: Runner) -> None:
    recorded(*WHOLE, "--tier", "core").refused(core.FILE, core.UPDATE)
