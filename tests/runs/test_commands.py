"""The commands that messages print are those that were called."""

from __future__ import annotations

import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import Artifacts
from tests.runs.conftest import WHOLE
from tests.support.making import with_graph
from tests.support.runner import Runner


@pytest.mark.slow
def test_the_commands_printed_are_the_ones_that_were_called(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "another graph\n")})
    given = (*WHOLE, "--jobs", "1", "--toolchain", sys.executable)
    finished = recorded(*given, "-k", "tosa", "--cell", "tosa-fp/alpha", "-x")
    assert finished.printed() == snapshot


def test_a_command_that_nox_was_called_with_is_printed(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "another graph\n")})
    typed = "nox -s 'goldens(1.4.1)' -- --jobs 1 --cell 'a/*'"
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", EXECUTORCH_GOLDENS_CALLED_AS=typed)
    assert finished.printed() == snapshot


def test_a_command_of_plain_pytest_is_printed(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "another graph\n")})
    recorded.program = (
        "-m",
        "pytest",
        "-p",
        "executorch_goldens.running.plugin",
        "--pyargs",
        "executorch_goldens.running.cells",
    )
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha")
    assert finished.printed() == snapshot
