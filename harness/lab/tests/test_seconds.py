"""The committed table of seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.results import rows as results
from executorch_goldens.sweep.seconds import TABLE, committed
from lab.__main__ import main
from lab.seconds.command import measured, write_table
from tests.support.rows import row

A, B, C = (Cell("tosa-fp", case) for case in ("a", "b", "c"))


def test_lines_of_results_tell_core_seconds_and_the_limit_of_what_came_to_no_end() -> None:
    hang = row(case="b", verdict="timed-out", seconds=(9.0, 9.0), core_seconds=(0.1, 0.1))
    assert measured([row(seconds=(9.0, 9.0), core_seconds=(1.0, 2.0)), hang]) == {A: 1.5, B: 9.0}
    assert measured([row(seconds=(9.0, 9.0))]) == {A: 9.0}


def test_the_table_changes_by_what_is_well_off_and_by_nothing_else(tmp_path: Path) -> None:
    assert write_table(tmp_path, {A: 1.04, C: 2.0})
    assert committed(tmp_path).measured == {A: 1.0, C: 2.0}
    assert not write_table(tmp_path, {A: 1.2, C: 1.7})
    assert write_table(tmp_path, {A: 1.4, B: 0.5})
    assert committed(tmp_path).measured == {A: 1.4, B: 0.5, C: 2.0}


def test_a_folder_without_results_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seconds", str(tmp_path)]) == 2
    assert "has no results.jsonl" in capsys.readouterr().err


def test_the_command_writes_a_table_from_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweeps").mkdir()
    made = row(variations=("seed0-heap0",), seconds=(2.0,), core_seconds=(0.0,))
    results.write(tmp_path / "sweeps" / results.FILE, [made], [made.cell])
    words = ["seconds", str(tmp_path / "sweeps"), "--goldens", str(tmp_path / "goldens")]
    assert [main(words), main(words)] == [0, 0]
    table = tmp_path / "goldens" / "1.4.1" / TABLE
    assert capsys.readouterr().out == f"{table}: written\n{table}: as it was\n"
    assert table.read_text().splitlines()[1:] == ["tosa-fp/a 2.0"]
