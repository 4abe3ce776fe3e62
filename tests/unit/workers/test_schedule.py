"""The order of exports: the next export, the next template, and the expected seconds of each cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from executorch_goldens.artifact import Casualty, Cell, Outcome
from executorch_goldens.variations import variations
from executorch_goldens.workers.schedule import Job, Schedule
from executorch_goldens.workers.seconds import (
    TABLE,
    Remembered,
    Seconds,
    SecondsError,
    committed,
    measured,
    write_table,
)
from lab.__main__ import main

A, B, C = (Cell("tosa-fp", case) for case in ("a", "b", "c"))
FIRST, SECOND = variations((0, 4))


def schedule(*cells: Cell) -> Schedule:
    jobs = [(cell, variation) for cell in cells for variation in (FIRST, SECOND)]
    made = Schedule()
    made.add(Job(number, cell, variation) for number, (cell, variation) in enumerate(jobs))
    return made


def test_jobs_are_taken_in_order_by_the_templates_that_are_ready() -> None:
    waiting = schedule(A, B)
    taken = [waiting.take([SECOND]), *(waiting.take([SECOND, FIRST]) for _ in range(3))]
    assert [str(job) for job in taken] == [
        "tosa-fp/a [seed4-heap1]",
        "tosa-fp/a [seed0-heap0]",
        "tosa-fp/b [seed0-heap0]",
        "tosa-fp/b [seed4-heap1]",
    ]
    assert waiting.take([FIRST, SECOND]) is None
    assert not waiting


def test_a_template_is_lacking_while_jobs_wait_for_it_and_needed_as_long() -> None:
    waiting = schedule(A)
    assert waiting.lacking([]) == FIRST
    assert waiting.lacking([FIRST]) == SECOND
    assert waiting.lacking([FIRST, SECOND]) is None
    assert waiting.needs(FIRST)
    waiting.take([FIRST])
    assert not waiting.needs(FIRST)
    assert waiting.needs(SECOND)
    assert waiting.lacking([SECOND]) is None


def test_what_a_template_that_hung_had_comes_first() -> None:
    waiting = schedule(A, B)
    waiting.add([Job(9, C, SECOND, again=True)])
    assert [job.cell for job in (waiting.take([FIRST, SECOND]) for _ in range(3)) if job] == [C, A, A]


# What exports take


def outcome(seconds: float, core_seconds: float, verdict: str = "") -> Outcome:
    result = Casualty(verdict or "crashed", "")
    return Outcome(A, FIRST.name, result, seconds, 1.0, core_seconds)


def test_the_longest_comes_first_and_what_is_unknown_takes_the_median_of_its_target() -> None:
    known = {A: 1.0, B: 5.0, Cell("tosa-int", "z"): 2.0}
    seconds = Seconds(known)
    assert seconds.of(C) == 3.0
    assert seconds.of(Cell("tosa-int", "y")) == 2.0
    assert seconds.of(Cell("xnnpack-fp32", "y")) == 2.0
    assert seconds.longest_first([*known, C]) == [B, C, Cell("tosa-int", "z"), A]
    assert Seconds({}).longest_first([C, A]) == [C, A]


def test_a_run_begins_with_its_quickest_cell() -> None:
    known = Seconds({A: 5.0, B: 1.0, C: 3.0})
    assert known.in_order([A, B, C]) == [B, A, C]
    assert known.in_order([A]) == [A]
    assert known.in_order([]) == []
    assert Seconds({}).in_order([C, A]) == [C, A]


def test_a_machine_remembers_the_median_of_its_last_runs(tmp_path: Path) -> None:
    for value in (100.0, 100.0, 100.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        remembered = Remembered(tmp_path)
        remembered.note(A, [outcome(value, 0.1), outcome(value, 0.1)])
        remembered.write()
    over = Remembered(tmp_path).over(Seconds({A: 9.0, B: 9.0}))
    assert over.measured == {A: 3.0, B: 9.0}
    (tmp_path / "seconds.json").write_text("[1]")
    assert Remembered(tmp_path).over(Seconds({})).measured == {}


def test_lines_of_results_tell_core_seconds_and_the_limit_of_what_came_to_no_end() -> None:
    row = {"target": "tosa-fp", "case": "a", "verdict": "stable", "seconds": [9.0, 9.0]}
    hang = {**row, "case": "b", "verdict": "timed-out", "core_seconds": [0.1, 0.1]}
    assert measured([{**row, "core_seconds": [1.0, 2.0]}, hang]) == {A: 1.5, B: 9.0}
    assert measured([row]) == {A: 9.0}


def test_the_table_changes_by_what_is_well_off_and_by_nothing_else(tmp_path: Path) -> None:
    assert write_table(tmp_path, {A: 1.04, C: 2.0})
    assert committed(tmp_path).measured == {A: 1.0, C: 2.0}
    assert not write_table(tmp_path, {A: 1.2, C: 1.7})
    assert write_table(tmp_path, {A: 1.4, B: 0.5})
    assert committed(tmp_path).measured == {A: 1.4, B: 0.5, C: 2.0}


def test_a_table_that_is_none_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert committed(tmp_path).measured == {}
    (tmp_path / TABLE).write_text("# head\ntosa-fp/a 1.0\ntosa-fp/b soon\n")
    with pytest.raises(SecondsError, match=f"{TABLE}:3: 'tosa-fp/b soon'"):
        committed(tmp_path)
    assert committed(tmp_path / TABLE).measured == {}
    (tmp_path / TABLE).write_bytes(b"\xff")
    with pytest.raises(SecondsError, match=f"{TABLE} cannot be read"):
        committed(tmp_path)
    assert main(["seconds", str(tmp_path)]) == 2
    assert "has no results.jsonl" in capsys.readouterr().err


def test_the_command_writes_a_table_from_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"release": "1.4.1", "target": "tosa-fp", "case": "a", "verdict": "stable", "seconds": [2.0]}
    row |= {"reason": "", "accepted": True, "recorded": False, "known": False}
    row |= {"variations": ["seed0-heap0"], "core_seconds": [0.0]}
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "results.jsonl").write_text(json.dumps(row) + "\n")
    words = ["seconds", str(tmp_path / "sweeps"), "--goldens", str(tmp_path / "goldens")]
    assert [main(words), main(words)] == [0, 0]
    table = tmp_path / "goldens" / "1.4.1" / TABLE
    assert capsys.readouterr().out == f"{table}: written\n{table}: as it was\n"
    assert table.read_text().splitlines()[1:] == ["tosa-fp/a 2.0"]
