"""The order of exports: the next export, the next template, and the expected seconds of each cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell, Killed, Outcome
from executorch_goldens.sweep.schedule import Job, Schedule
from executorch_goldens.sweep.seconds import TABLE, Remembered, Seconds, SecondsError, committed
from executorch_goldens.zoo.variations import variations

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
    assert waiting.first(FIRST) is not None
    waiting.take([FIRST])
    assert waiting.first(FIRST) is None
    assert waiting.first(SECOND) is not None
    assert waiting.lacking([SECOND]) is None


def test_what_a_template_that_hung_had_comes_first() -> None:
    waiting = schedule(A, B)
    waiting.add([Job(9, C, SECOND, again=True)])
    assert [job.cell for job in (waiting.take([FIRST, SECOND]) for _ in range(3)) if job] == [C, A, A]


# What exports take


def outcome(seconds: float, core_seconds: float) -> Outcome:
    return Outcome(A, FIRST.name, Killed("SIGSEGV"), seconds, 1.0, core_seconds)


def test_the_longest_comes_first_and_what_is_unknown_takes_the_median_of_its_target() -> None:
    known = {A: 1.0, B: 5.0, Cell("tosa-int", "z"): 2.0}
    seconds = Seconds(known)
    assert seconds.expected(C) == 3.0
    assert seconds.expected(Cell("tosa-int", "y")) == 2.0
    assert seconds.expected(Cell("xnnpack-fp32", "y")) == 2.0
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


def test_a_table_that_is_none_is_one_error(tmp_path: Path) -> None:
    assert committed(tmp_path).measured == {}
    (tmp_path / TABLE).write_text("# head\ntosa-fp/a 1.0\ntosa-fp/b soon\n")
    with pytest.raises(SecondsError, match=f"{TABLE}:3: 'tosa-fp/b soon'"):
        committed(tmp_path)
    assert committed(tmp_path / TABLE).measured == {}
    (tmp_path / TABLE).write_bytes(b"\xff")
    with pytest.raises(SecondsError, match=f"{TABLE} cannot be read"):
        committed(tmp_path)


def test_what_is_dropped_waits_no_longer_unless_somebody_awaits_it_alone() -> None:
    waiting = schedule(A, B)
    waiting.take([FIRST])
    waiting.add([Job(9, A, FIRST, awaited=True)])
    assert waiting.drop(A) == {SECOND}
    assert waiting.drop(C) == set()
    assert [str(job) for job in waiting.empty()] == [
        "tosa-fp/a [seed0-heap0]",
        "tosa-fp/b [seed0-heap0]",
        "tosa-fp/b [seed4-heap1]",
    ]
