"""``goldens freeze`` and ``goldens thaw``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, ERROR, SAME
from executorch_goldens.programs import comparing, running
from executorch_goldens.programs.reading import Corpus
from executorch_goldens.programs.writing import Writer
from executorch_goldens.settings.exports import default_interpreter
from tests import REPOSITORY
from tests.support.corpora import FROZEN, TOSA, XNNPACK, changed, halved
from tests.support.runner import DROPPED


def harness(*words: str, folder: Path = REPOSITORY, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return subprocess.run(
        [sys.executable, "-m", "executorch_goldens", *words],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(REPOSITORY)} | environment,
        capture_output=True,
        text=True,
        timeout=400,
    )


def test_thaw_says_what_became_of_each_program_and_of_all(folder: Path) -> None:
    python = str(default_interpreter())
    right = harness("thaw", str(folder), "--runtime", python, folder=folder)
    assert right.returncode == SAME, right.stderr
    assert f"same: {XNNPACK} program\n" in right.stdout
    assert f"kept: {TOSA} program: only what has TOSABackend runs it\n" in right.stdout
    assert f"same: {TOSA} delegate_0\n" in right.stdout
    # Every digest fits, and one program is no program.
    corpus = Corpus.read(folder)
    with Writer(folder.parent / "spoilt") as writer:
        for entry in corpus.manifest.cells:
            programs = [corpus.program(each) for each in entry.programs]
            if entry.cell == str(XNNPACK):
                programs = [changed(each, halved) for each in programs]
            writer.add(Cell.named(entry.cell), entry.variations, programs)
        writer.finish(corpus.manifest.made_with, corpus.manifest.patches)
    wrong = harness("thaw", str(folder.parent / "spoilt"), "--runtime", python, "--json")
    assert wrong.returncode == DIFFERENT, wrong.stderr
    said = json.loads(wrong.stdout)
    assert said["made_with"]["executorch"] == "1.4.1"
    found = {(row["cell"], row["program"]): row["result"] for row in said["programs"]}
    assert found.pop((str(XNNPACK), "program")) == running.REFUSED
    assert set(found.values()) == {comparing.SAME, comparing.KEPT}


def test_thaw_takes_cells_and_refuses_those_that_are_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["thaw", str(FROZEN), "--runtime", str(tmp_path / "none"), "--cell"]
    assert cli.main([*words, "tosa-int/no-such"]) == ERROR
    assert "unknown case 'no-such'" in capsys.readouterr().err
    assert cli.main([*words, "tosa-int/*"]) == ERROR
    assert "has tosa-tools" in capsys.readouterr().err


@pytest.mark.slow
def test_freeze_takes_what_is_right_and_refuses_the_rest_by_name(tmp_path: Path) -> None:
    words = ("--models", "tests.support.zoo", "--goldens", str(tmp_path / "goldens"), "--jobs", "2")
    cells = ("xnnpack-fp32/steady", "xnnpack-fp32/wrong", "xnnpack-fp32/set-of-strings", "tosa-fp/steady")
    chosen = [word for cell in cells for word in ("--cell", cell)]
    done = harness("freeze", str(tmp_path / "corpus"), *words, *chosen)
    assert done.returncode == DIFFERENT, done.stderr
    assert "refused: xnnpack-fp32/wrong: corrupt: " in done.stdout
    assert "refused: xnnpack-fp32/set-of-strings: order-only: " in done.stdout
    assert "2 cells frozen, 2 refused" in done.stdout
    corpus = Corpus.read(tmp_path / "corpus")
    corpus.check()
    assert {entry.cell for entry in corpus.manifest.cells} == {"xnnpack-fp32/steady", "tosa-fp/steady"}
    again = harness("freeze", str(tmp_path / "corpus"), *words, *chosen)
    assert again.returncode == ERROR
    assert "exists, and a corpus is never changed" in again.stderr
    nothing = harness("freeze", str(tmp_path / "none"), *words, "--cell", "xnnpack-fp32/wrong")
    assert nothing.returncode == ERROR
    assert "no cell could be frozen" in nothing.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"corpus"}
    thawed = harness(
        "thaw", str(tmp_path / "corpus"), "--runtime", str(default_interpreter()), folder=tmp_path
    )
    assert thawed.returncode == SAME, thawed.stdout + thawed.stderr
