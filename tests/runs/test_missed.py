"""Selected cells without a verdict: no run is green that has one, whatever took it away."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.runs.conftest import TARGETS, WHOLE
from tests.support.runner import Runner

TAKES = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "tosa-fp" in item.name]
"""
SKIPS = """
import pytest
def pytest_runtest_setup(item):
    if "tosa-fp" not in item.name:
        pytest.skip()
"""


@pytest.mark.parametrize("words", ["-k tosa-fp", "--collect-only", "--help", "-n 2"])
def test_options_of_the_environment_are_ignored(
    recorded: Runner, words: str, snapshot: SnapshotAssertion
) -> None:
    finished = recorded(*WHOLE, PYTEST_ADDOPTS=words)
    assert finished.printed() == snapshot
    assert len(finished.verdicts()) == len(TARGETS) * 2, finished.output
    assert finished.code == 0


@pytest.mark.parametrize("words", ["-k tosa-fp", "--collect-only"])
def test_cells_that_addopts_of_a_plain_pytest_take_away_are_missed(
    recorded: Runner, words: str, snapshot: SnapshotAssertion
) -> None:
    recorded.program = (
        *("-m", "pytest", "-p", "executorch_goldens.running.plugin"),
        *("--pyargs", "executorch_goldens.running.cells"),
    )
    finished = recorded(*WHOLE, PYTEST_ADDOPTS=words)
    assert finished.code not in (0, pytest.ExitCode.INTERNAL_ERROR), finished.output
    assert finished.printed() == snapshot


@pytest.mark.parametrize("plugin", [TAKES, SKIPS], ids=["deselects", "skips"])
def test_what_a_plugin_takes_away_is_missed_beside_what_was_typed(
    recorded: Runner, plugin: str, snapshot: SnapshotAssertion
) -> None:
    (recorded.folder / "thief.py").write_text(plugin)
    finished = recorded(*WHOLE, "-k", "tosa", PYTEST_PLUGINS="thief")
    assert finished.code == pytest.ExitCode.TESTS_FAILED, finished.output
    assert finished.printed() == snapshot
