"""``goldens show TARGET/CASE``: the golden of a cell as text, or a run's later artifact."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from executorch_goldens.cli import ERROR, SAME, main
from executorch_goldens.goldens import golden, program
from executorch_goldens.goldens.record import Record
from tests import DATA, GOLDENS
from tests.support.decoding.payloads import load

CELL = "tosa-fp/linear"
MADE = DATA / "report_results" / "stock" / "1.2.0" / "tosa-fp" / "two-delegates"


@pytest.fixture
def roots(tmp_path: Path) -> list[str]:
    """Options that name a root of one golden, of two releases, and a folder without results."""
    for release in ("1.3.1", "1.4.1"):
        (tmp_path / "goldens" / release / CELL).parent.mkdir(parents=True)
        for name in (f"{CELL}.txt", golden.RELEASE):
            shutil.copy(GOLDENS / release / name, tmp_path / "goldens" / release / name)
    return ["--goldens", str(tmp_path / "goldens"), "--sweeps", str(tmp_path / "sweeps")]


def test_a_cell_is_shown_by_every_text_of_its_golden(
    roots: list[str], capsys: pytest.CaptureFixture[str], release: str
) -> None:
    assert main(["show", CELL, *roots]) == SAME
    said = capsys.readouterr().out
    file = Path(roots[1]) / release / f"{CELL}.txt"
    assert said.startswith(f"{CELL}: the golden ({file})\n")
    for name, text in golden.read(file).texts().items():
        assert f"\n==> {name} <==\n{text}" in f"{said}\n"


def test_the_short_form_of_a_cell_has_its_operators(
    roots: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", CELL, "--short", "--release", "1.4.1", *roots]) == SAME
    said = capsys.readouterr().out
    assert re.findall("==> (.*) <==", said) == ["graph", "delegate_0.tosa"]
    assert " = CONV2D(" in said or " = MATMUL(" in said
    assert said.index("\nconstants\n") > said.index("\ngraph ")


def test_a_release_is_chosen(roots: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", CELL, "--release", "1.3.1", *roots]) == SAME
    texts = golden.read(Path(roots[1]) / "1.3.1" / f"{CELL}.txt")
    assert texts.texts()["manifest"] in capsys.readouterr().out
    assert main(["show", CELL, "--release", "1.0.0", *roots]) == ERROR
    assert "'1.0.0'" in capsys.readouterr().err


def test_what_a_run_made_is_shown_where_it_is_newer_than_the_golden(
    roots: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reviewed = tmp_path / "goldens" / "1.4.1" / f"{CELL}.txt"
    folder = tmp_path / "sweeps" / "1.4.1" / CELL / "seed0-heap0"
    shutil.copytree(MADE / "seed0-heap0", folder)
    (folder / "program.pte").write_bytes(b"\xff")
    made = folder / "golden.txt"
    for newer, source in (
        (made, f"the result of a run, newer than the golden ({made})"),
        (reviewed, "the golden ("),
    ):
        os.utime(reviewed, (1, 1))
        os.utime(made, (1, 1))
        os.utime(newer, (2, 2))
        assert main(["show", CELL, "--release", "1.4.1", *roots]) == SAME
        said = capsys.readouterr().out
        assert said.startswith(f"{CELL}: {source}")
        assert (golden.read(made).texts()["manifest"] in said) == (newer == made)


def test_of_what_a_run_made_the_whole_text_of_the_program_is_shown(
    roots: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole = load("1.5.1/tosa-fp.pte").text(delegates=False)
    made = tmp_path / "sweeps" / "1.4.1" / CELL / "seed0-heap0" / "golden.txt"
    sections = {"graph": "", "pte": program.section(whole)}
    golden.write(made, Record({"variations": "x"}, sections, whole=whole), kept=True)
    assert main(["show", CELL, "--release", "1.4.1", *roots]) == SAME
    assert f"==> pte <==\n{whole}" in capsys.readouterr().out


def test_a_cell_that_there_is_not_is_an_error_that_says_how_to_get_one(
    roots: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "tosa-fp/nothing", *roots]) == ERROR
    assert "goldens run --cell tosa-fp/nothing" in capsys.readouterr().err
