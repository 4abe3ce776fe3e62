"""Known defects."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import Artifacts
from tests.runs.conftest import UPDATE, WHOLE
from tests.support.runner import Runner


def test_a_known_defect_is_shown_and_fails_as_soon_as_it_is_another(
    recorded: Runner, artifacts: Artifacts
) -> None:
    known = {"tosa-fp/alpha": "corrupt: upstream issue 1", "tosa-int/alpha": "order-only: upstream issue 2"}
    wrong_cells = {"tosa-fp/alpha": artifacts["wrong"], "tosa-int/alpha": artifacts["wrong"]}
    recorded.answers({"known": known, "*": artifacts["steady"], **wrong_cells})
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", "-v")
    assert finished.code == 0, finished.output
    assert "known defect: tosa-fp/alpha is corrupt: upstream issue 1" in finished.output
    finished = recorded(*WHOLE, "--cell", "tosa-int/alpha")
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert finished.verdicts() == {"tosa-int/alpha": "corrupt"}


def test_a_known_defect_that_is_gone_fails_and_is_not_recorded_before_its_entry_is_deleted(
    recorded: Runner, artifacts: Artifacts
) -> None:
    shutil.rmtree(recorded.root / "tosa-fp" / "alpha")
    before = recorded.files()
    known = {"tosa-fp/alpha": "corrupt: upstream issue 1"}
    recorded.answers({"known": known, "*": artifacts["steady"]})
    recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE).refused("upstream issue 1", "known.toml", "delete")
    assert recorded.files() == before
