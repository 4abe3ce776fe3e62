"""Goldens that a merge of two branches left."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import Artifacts
from tests.runs.conftest import UPDATE, WHOLE
from tests.support.commands import ended
from tests.support.making import with_graph, wrong
from tests.support.runner import Runner


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    return ended(["git", *identity, *arguments], folder)


def merged(recorded: Runner, artifacts: Artifacts) -> None:
    """Let two branches change one golden, and merge them."""
    one = (*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    git(recorded.folder, "init", "-b", "main")
    for branch, graph in (("main", None), ("theirs", "their graph\n"), ("ours", "our graph\n")):
        if graph is not None:
            git(recorded.folder, "checkout", "-b", branch, "main")
            recorded.answers({"alpha": with_graph(artifacts["steady"][0], graph)})
            assert recorded(*one).code == 0
        git(recorded.folder, "add", "goldens")
        assert git(recorded.folder, "commit", "-m", branch).returncode == 0
    assert git(recorded.folder, "merge", "theirs").returncode == 1


def typed(output: str, what: str) -> list[str]:
    """Return the command that was printed for something."""
    (line,) = {line.strip() for line in output.splitlines() if line.strip().startswith(what)}
    return shlex.split(line.partition(":")[2])


@pytest.mark.slow
def test_what_a_merge_leaves_of_a_golden_is_recorded_by_the_command_that_is_printed(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    merged(recorded, artifacts)
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "the graph of both\n")})
    before = recorded.files()
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha")
    assert finished.verdicts() == {"tosa-fp/alpha": "damaged-golden"}
    assert finished.printed() == snapshot
    new_only = recorded(*WHOLE, "--cell", "tosa-fp/alpha", f"{UPDATE}-new-only")
    assert new_only.verdicts() == {"tosa-fp/alpha": "damaged-golden"}
    assert recorded.files() == before
    command = typed(finished.output, "accept:")
    assert UPDATE in command
    again = recorded(*command[command.index("run") + 1 :])
    assert again.code == 0, again.output
    assert recorded(*WHOLE, "--cell", "tosa-fp/alpha").verdicts() == {"tosa-fp/alpha": "stable"}
    git(recorded.folder, "add", "goldens")
    assert git(recorded.folder, "commit", "-m", "merged").returncode == 0
    assert git(recorded.folder, "status", "--porcelain", "goldens").stdout == ""


@pytest.mark.slow
def test_what_is_wrong_is_not_recorded_in_place_of_what_a_merge_left(
    recorded: Runner, artifacts: Artifacts
) -> None:
    merged(recorded, artifacts)
    recorded.answers({"alpha": wrong(artifacts["steady"][0])})
    before = recorded.files()
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    assert finished.verdicts() == {"tosa-fp/alpha": "corrupt"}
    assert recorded.files() == before
