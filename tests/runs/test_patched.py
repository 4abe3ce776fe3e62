"""ExecuTorch in another repository: as published, or with the release's patches."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.settings import releases
from tests import REPOSITORY
from tests.support.commands import GOLDENS, ended
from tests.support.making import GRAPH, RENUMBERED, artifact, lowered
from tests.support.runner import Runner

UPDATE = "--snapshot-update"
#: Way out in a message where the release declares a patch that the run has not applied.
WAY_OUT = 'patches = "auto" under [tool.goldens] in pyproject.toml applies the patches of'
PARTITIONS = f"exported without partition-order (#19045), which may be why: {WAY_OUT}"

#: Two delegates of TOSA, whose order follows the hash seed (#19045).
MODEL = """
import torch

from executorch_goldens import Data, Example, case

class Scaled(torch.nn.Module):
    def forward(self, x, y):
        z = x + y
        return torch.max(z) * z

@case(guards="what is between two delegates runs outside")
def two_delegates(data: Data) -> Example:
    return Example(Scaled(), (data.tensor("x", 2, 4), data.tensor("y", 2, 4)))
"""

Settings = Callable[[str], Runner]


@pytest.fixture
def repository(runner: Runner) -> Settings:
    """Write the settings of a repository, whose zoo is ``own_zoo``."""

    def settings(text: str) -> Runner:
        table = f'[tool.goldens]\nmodels = ["own_zoo"]\nvariations = "0,4"\n{text}\n'
        (runner.folder / "pyproject.toml").write_text(table)
        return replace(runner, directory=runner.folder)

    return settings


def applied(output: str) -> str:
    """Return the patches that the end of a run names."""
    return output.partition("\npatches: ")[2].partition(";")[0]


@pytest.mark.slow
def test_cells_that_disagree_without_a_declared_patch_name_it_and_the_setting(
    runner: Runner, repository: Settings
) -> None:
    runner.zoo("own_zoo", "alpha")
    runner.answers({"*": (artifact(lowered(GRAPH)), artifact(lowered(RENUMBERED, pte=b"other")))})
    cells = ("--cell", "tosa-fp/*", "--cell", "xnnpack-fp32/*", "--explain", "off", "-v")
    found = repository("")(*cells)
    assert set(found.verdicts().values()) == {"order-only"}, found.output
    assert applied(found.output) == "none"
    (line,) = [line for line in found.output.splitlines() if WAY_OUT in line]
    assert line == f"  patches: {PARTITIONS} {runner.release}, or pass --patches auto"
    # No patch that is declared edits what the other cell ran.
    assert line in message(found.output, "tosa-fp/alpha")
    for other in (repository('patches = "auto"')(*cells), repository("")(*cells, "--patches", "auto")):
        declared = releases.load().release(runner.release).patches
        assert applied(other.output) == ", ".join(declared)
        assert set(other.verdicts().values()) == {"order-only"}
        assert WAY_OUT not in other.output
    named = repository('patches = ["output-aliases"]')(*cells)
    assert applied(named.output) == "output-aliases"
    assert PARTITIONS in named.output


def message(output: str, cell: str) -> list[str]:
    """Return the lines of the message of a cell."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"order-only: {cell} "))
    end = next(number for number in range(start, len(lines)) if lines[number].startswith("  files: "))
    return lines[start:end]


@pytest.mark.slow
def test_two_delegates_cannot_be_recorded_as_published_and_can_with_the_line_that_the_message_gives(
    runner: Runner, repository: Settings
) -> None:
    """Real exports: #19045 is in every release of the matrix."""
    (runner.folder / "own_zoo.py").write_text(MODEL)
    asked = ("--cell", "tosa-fp/two-delegates", "--jobs", "2", "--explain", "off", UPDATE)
    red = repository("")(*asked)
    assert red.verdicts() == {"tosa-fp/two-delegates": "order-only"}, red.output
    assert PARTITIONS in red.output
    assert not runner.goldens.exists() or not runner.recorded()
    green = repository('patches = "auto"')(*asked)
    assert green.code == 0, green.output
    texts = golden.read(golden.file_of(runner.root, Cell("tosa-fp", "two-delegates")))
    declared = releases.load().release(runner.release).patches
    assert f"patches: {' '.join(declared)}\n" in texts.texts()["manifest"]


@pytest.mark.slow
def test_a_comparison_has_the_patches_that_the_repository_sets(runner: Runner, repository: Settings) -> None:
    (runner.folder / "own_zoo.py").write_text(MODEL)
    own = {
        "XDG_CACHE_HOME": str(runner.folder / "cache"),
        "PYTHONPATH": f"{REPOSITORY / 'harness'}{os.pathsep}{runner.folder}",
    }

    def patches(*words: str) -> list[str]:
        asked = (
            "--cell",
            "xnnpack-fp32/two-delegates",
            "--variations",
            "0,4",
            "--jobs",
            "2",
            "--json",
            *words,
        )
        command = [*GOLDENS, "compare", sys.executable, sys.executable, *asked]
        done = ended(command, runner.folder, **own)
        assert done.returncode == 0, done.stdout + done.stderr
        found: list[str] = json.loads(done.stdout)["patches"]
        return found

    repository("")
    assert patches() == []
    declared = list(releases.load().release(runner.release).patches)
    assert patches("--patches", "auto") == declared
    repository('patches = "auto"')
    assert patches() == declared
