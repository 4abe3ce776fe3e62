"""Progress of a run: one live line in a terminal, lines elsewhere, neither garbled."""

from __future__ import annotations

import math
import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Killed
from executorch_goldens.causes.groups import EditedCell
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.progress import MOST_ALIKE, Progress
from executorch_goldens.sweep.schedule import Job
from executorch_goldens.sweep.seconds import Seconds
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from tests import REPOSITORY
from tests.conftest import Artifacts
from tests.support.commands import inherited
from tests.support.making import lowered_by
from tests.support.runner import RUN_LIMIT, Runner
from tests.support.verdicts import verdict

A, B, C = (Cell("tosa-fp", case) for case in ("a", "b", "c"))
(FIRST,) = variations((0,))

#: Expected seconds, those that it has taken, and whether it is begun.
Work = tuple[float, float, bool]

#: A crash needs no artifact.
CRASH = Killed("SIGSEGV", tail=("last words",))


class Screen:
    """Keeps the output; a live line is kept with an arrow."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.begun = ""

    def rewrite(self, line: str, **_: bool) -> None:
        self.lines.append(f"> {line}")

    def write_line(self, line: str, **_: bool) -> None:
        self.lines.append(self.begun + line)
        self.begun = ""

    def write(self, content: str, **_: bool) -> None:
        self.begun += content.removeprefix("\r")


class Exporting:
    """The part of a sweep that is used: its cells are ready after a number of queries."""

    def __init__(self, questions: int, *work: Work) -> None:
        self.questions = questions
        self.to_do = work

    def ready(self, cell: Cell, seconds: float) -> bool:
        self.questions -= 1
        return self.questions < 0

    def doing(self) -> str:
        return f"running: {Job(0, A, FIRST)}"

    def work(self, expected: object) -> Sequence[Work]:
        return self.to_do


def left_after(seconds: float, *work: Work, left: float = math.inf) -> float:
    """Return the time left of a sweep with some work after so many seconds, two exports at a time."""
    now = [0.0]
    sweep = cast(Sweep, Exporting(0, *work))
    progress = Progress([], [sweep], Seconds({}), 2, Screen(), False, lambda: now[0], lambda: left)
    now[0] = seconds
    return progress.seconds_left()


def shown(live: bool, ticks: Sequence[float], judged: Mapping[Cell, Verdict | None]) -> list[str]:
    """Return the output of a run over three cells whose clock shows `ticks`, a query each."""
    screen, clock, now = Screen(), iter(ticks), [0.0]

    class Ticking(Exporting):
        def ready(self, cell: Cell, seconds: float) -> bool:
            now[0] = next(clock, now[0])
            return super().ready(cell, seconds)

        def work(self, expected: object) -> Sequence[Work]:
            return [(400.0, 2 * now[0], True)]

    sweep = cast(Sweep, Ticking(len(ticks)))
    progress = Progress([A, B, C], [sweep], Seconds({}), 2, screen, live, lambda: now[0])
    progress.wait(sweep, A)
    for cell, found in judged.items():
        progress.judged(sweep, cell, found, None)
    return screen.lines


RUNNING = "running: tosa-fp/a [seed0-heap0]"
START = f"0 of 3 cells, 3 to go, about 3 min; {RUNNING}"


def test_elsewhere_it_is_a_line_a_minute() -> None:
    lines = [START.replace("3 min", f"{minutes} min") for minutes in (3, 2, 1)]
    assert shown(False, [0.0, 30.0, 59.0, 61.0, 110.0, 122.0], {}) == lines


def test_before_anything_is_done_the_time_left_is_that_of_an_idle_machine() -> None:
    assert left_after(0.0, (600.0, 0.0, False)) == 300.0


def test_the_time_left_follows_the_pace_of_the_run_from_its_first_seconds() -> None:
    # A template that starts got two seconds of processor time in ten.
    assert 150.0 < left_after(10.0, (8.0, 2.0, True), (52.0, 0.0, False)) < 290.0
    assert left_after(300.0, (60.0, 60.0, True), (60.0, 0.0, False)) == pytest.approx(300.0, rel=0.05)
    # What takes longer than expected does not take time back.
    assert left_after(300.0, (60.0, 90.0, True), (60.0, 0.0, False)) == pytest.approx(300.0, rel=0.05)


def test_after_the_time_of_a_comparison_only_what_is_begun_is_waited_for() -> None:
    work = (20.0, 20.0, True), (10.0, 0.0, True), (600.0, 0.0, False)
    assert left_after(20.0, *work, left=60.0) == 60.0
    assert left_after(20.0, *work, left=-5.0) == pytest.approx(10.0, rel=0.1)


def test_in_a_terminal_it_is_one_line_twice_a_second() -> None:
    assert shown(True, [0.0, 0.1, 0.6, 0.7, 1.2], {}) == [f"> {START}"[:81]] * 3


@pytest.mark.parametrize("live", [True, False])
def test_a_cell_that_is_not_as_it_should_be_has_a_line_of_its_own(live: bool) -> None:
    verdicts = {
        A: verdict("stable", cell=A),
        B: verdict("corrupt", "one\ntwo", cell=B),
        C: verdict("corrupt", "three", cell=C, known="why"),
    }
    lines = [line for line in shown(live, [], verdicts) if " of 3 cells" not in line]
    assert lines == (["> "] if live else []) + ["corrupt: tosa-fp/b: one"]
    (line,) = [line for line in shown(live, [], {A: None}) if line.startswith("no verdict")]
    assert line == "no verdict: tosa-fp/a"


def test_of_cells_that_are_alike_some_have_a_line() -> None:
    screen = Screen()
    cells = [Cell("tosa-fp", f"case-{number}") for number in range(MOST_ALIKE + 3)]
    progress = Progress([*cells, A], [], Seconds({}), 2, screen, True)
    alike = EditedCell("cause", "FoldPass (TOSA): output_max inf -> 2.0")
    for cell in cells:
        progress.judged(cast(Sweep, Exporting(0)), cell, verdict("changed", "differs", cell=cell), alike)
    progress.judged(cast(Sweep, Exporting(0)), A, verdict("corrupt", "differs", cell=A), alike)
    shown = [line for line in screen.lines if not line.startswith("> ")]
    assert shown == [
        *(f"changed: {cell}: FoldPass (TOSA): output_max inf -> 2.0" for cell in cells[:MOST_ALIKE]),
        # Its verdict is another one.
        f"corrupt: {A}: FoldPass (TOSA): output_max inf -> 2.0",
    ]
    assert progress.unshown() == 3


def test_a_line_counts_the_cells_that_were_judged() -> None:
    sweep = cast(Sweep, Exporting(0, (8.0, 0.0, False)))
    progress = Progress([A, B, C], [sweep], Seconds({}), 2, Screen(), False, lambda: 0.0)
    progress.judged(sweep, A, verdict("stable", cell=A), None)
    progress.judged(sweep, B, None, None)
    assert progress.line("running: x") == "2 of 3 cells, 1 not passed, 1 to go, about 3 s; running: x"


def test_further_exports_have_a_bar_and_elsewhere_a_line_now_and_then() -> None:
    screen, now = Screen(), [0.0]
    progress = Progress([A], [], Seconds({}), 1, screen, False, lambda: now[0])
    for now[0], what in ((0.0, "x"), (6.0, "x"), (7.0, "y"), (26.0, "y"), (27.0, "y")):
        progress.step(what, 1, 4, 60.0, now[0])
    bar = "[#####...............] 1 of 4,"
    assert screen.lines == [f"{bar} 0 of 60 s: x", f"{bar} 7 of 60 s: y", f"{bar} 27 of 60 s: y"]


# Whole runs


@pytest.fixture
def crashing(runner: Runner) -> Runner:
    """A runner whose cells crash."""
    runner.zoo("zoo_two", "alpha", "beta")
    runner.answers({"*": CRASH})
    return runner


WORDS = ("--models", "zoo_two", "--cell", "tosa-fp/*")
REASONS = [f"crashed: tosa-fp/{case}: seed0-heap0: killed by SIGSEGV" for case in ("alpha", "beta")]


def test_a_run_in_ci_has_lines_in_the_place_of_pytests_letters(crashing: Runner) -> None:
    output = crashing(*WORDS, "-q").output.splitlines()
    before = output[: next(number for number, line in enumerate(output) if line.startswith("1 cause, "))]
    assert [line for line in before if line] == [
        REASONS[0],
        "1 of 2 cells, 1 not passed, 1 to go, about 0 s; running: none yet",
        REASONS[1],
    ]
    assert "2 failed" in output[-1]


def test_a_red_run_prints_its_causes_with_their_commands_then_cells_then_counts(
    crashing: Runner, snapshot: SnapshotAssertion
) -> None:
    assert crashing(*WORDS).printed() == snapshot
    assert crashing(*WORDS, "-v").printed() == snapshot(name="every cell")


def test_a_green_run_prints_six_lines_at_most(
    crashing: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    crashing.answers({"*": artifacts["steady"][0]})
    assert crashing(*WORDS, "--snapshot-update").code == 0
    finished = crashing(*WORDS)
    assert finished.printed() == snapshot
    assert finished.printed().count("\n") <= 6


def test_what_was_not_run_is_counted_and_named_where_it_is_recorded(
    crashing: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    made = artifacts["steady"][0]
    not_run = replace(lowered_by(made), samples=(), not_run="no rule gives the sizes")
    crashing.answers({"*": replace(made, result=not_run)})
    recorded = crashing(*WORDS, "--snapshot-update")
    assert recorded.code == 0, recorded.output
    assert recorded.printed() == snapshot
    assert crashing(*WORDS).printed() == snapshot
    assert crashing(*WORDS, "-v").printed() == snapshot


def test_a_verdict_has_a_colour_where_that_is_asked_for(crashing: Runner) -> None:
    plain, coloured = (crashing(*WORDS, "-q", **{name: "1"}).output for name in ("NO_COLOR", "FORCE_COLOR"))
    assert f"{REASONS[0]}\n" in plain
    verdict, _, what = REASONS[0].partition(":")
    assert f"\x1b[31m{verdict}\x1b[0m:{what}" in coloured
    assert "\x1b[31m" not in plain


def test_no_line_is_there_with_q_twice(crashing: Runner) -> None:
    output = crashing(*WORDS, "-q", "-q").output
    assert " of 2 cells" not in output
    assert output.startswith("FF")


def test_a_live_line_leaves_nothing_in_a_terminal(crashing: Runner) -> None:
    crashing.know({"tosa-fp/beta": "crashed: it always does"})
    crashing.answers({"*": CRASH})
    main, side = pty.openpty()
    environment = inherited()
    environment |= crashing.environment | {"PY_COLORS": "0", "TERM": "xterm", "COLUMNS": "100"}
    environment["PYTHONPATH"] = os.pathsep.join([str(crashing.folder), environment.get("PYTHONPATH", "")])
    with subprocess.Popen(
        crashing.command(*WORDS, "-q"), cwd=REPOSITORY, env=environment, stdout=side, stderr=side
    ) as process:
        os.close(side)
        written = b""
        # Reading a terminal whose other side is closed is an error on Linux.
        while chunk := read(main):
            written += chunk
        process.wait(RUN_LIMIT)
    os.close(main)
    raw = written.decode()
    lines = [screen_line(line) for line in raw.replace("\r\n", "\n").split("\n")]
    assert "\r1 of 2 cells, 1 not passed" in raw
    before = lines[: next(number for number, line in enumerate(lines) if line.startswith("1 cause, "))]
    assert [line for line in before if line] == REASONS[:1]


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def screen_line(written: str) -> str:
    """Return a terminal's view of a line, in which a carriage return goes back to its beginning."""
    shown: list[str] = []
    for part in written.split("\r"):
        shown[: len(part)] = part
    return "".join(shown).rstrip()


def test_what_a_run_prints_at_its_end_does_not_depend_on_which_cell_ended_first(
    runner: Runner, artifacts: Artifacts
) -> None:
    runner.zoo("own_zoo", "alpha")
    runner.answers({"alpha": artifacts["steady"][0]})
    targets = ["tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8"]
    words = ("--models", "own_zoo", "--variations", "0,4", "--snapshot-update")
    runner.root.mkdir(parents=True)
    # The longest is exported first.
    seconds = "".join(f"{target}/alpha {number}.0\n" for number, target in enumerate(targets, 1))
    (runner.root / "seconds.txt").write_text(seconds)
    finished = runner(*words, "-v")
    assert finished.code == 0, finished.output
    found = [line.split(": ")[0] for line in finished.output.splitlines() if ": 1 cell run: " in line]
    assert found == targets
