"""Every command that a red run prints is run, as it is printed, by a shell that has the environment on its path."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from executorch_goldens import plugins
from executorch_goldens.artifact import Artifact
from executorch_goldens.cli import COMMANDS
from tests.conftest import Artifacts
from tests.support.clusters import import_path
from tests.support.commands import ended
from tests.support.making import other, wrong
from tests.support.runner import Runner

NAMES = "|".join((*COMMANDS, *plugins.commands({})))
#: Beginning of a command in a line of a message, after words or none.
COMMAND = re.compile(rf"(?:^|[ `'(])((?:goldens (?:{NAMES})|nox -|git|python) [^`]*)$")
#: Words of an output that mean that a command was none.
REFUSED = ("command not found", "unrecognized arguments", "usage:", "Traceback", "No module named")


def printed(output: str, zoo: str) -> dict[str, str]:
    """Return the commands of an output: one for each shape that they have when cells are left out."""
    found: dict[str, str] = {}
    for line in output.splitlines():
        for command in COMMAND.findall(line.strip()):
            # `goldens repro ... writes a script for an issue`, in a sentence.
            words = re.sub(r" writes a script for an issue$", "", command).rstrip(".,;)")
            found.setdefault(re.sub(r"\S+/" + zoo + r"-\d+", "CELL", words), words)
    return found


def test_every_command_that_a_red_run_prints_runs(
    runner: Runner, artifacts: Artifacts, tmp_path: Path
) -> None:
    # Two of each kind.
    names = [f"some-{number}" for number in range(10)]
    zoo = runner.zoo("some", *names)
    steady = artifacts["steady"][0]
    assert isinstance(steady, Artifact)
    words = ("--models", zoo, "--cell", "xnnpack-fp32/*", "--variations", "quick")
    runner.answers(dict.fromkeys(names, steady))
    assert runner(*words, "--snapshot-update").code == 0
    kinds = (
        other(steady),
        wrong(steady, "before the delegates"),
        artifacts["hashed-constant"],
        artifacts["set-of-strings"],
        artifacts["does-not-run"][0],
    )
    runner.answers({name: kinds[number % len(kinds)] for number, name in enumerate(names)})
    # As a person calls it: without the folders of these tests in front.
    finished = runner(*words)
    assert finished.code == 1
    assert len(set(finished.verdicts().values())) == len(kinds), finished.verdicts()
    commands = printed(finished.output, "some")
    for way in ("review --accept ", "review --reject ", "diff ", "report "):
        assert any(command.startswith(f"goldens {way}") for command in commands.values()), finished.output
    environment = {
        **runner.environment,
        "PYTHONPATH": import_path(runner.folder),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    for command in commands.values():
        ran = ended(["bash", "-c", command], **environment)
        said = ran.stdout + ran.stderr
        # A run is red again; what has no model to export says so.
        assert ran.returncode in (0, 1, 2), f"{command}\n{said}"
        assert not any(refused in said for refused in REFUSED), f"{command}\n{said}"
