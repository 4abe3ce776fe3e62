"""Progress of a run: one live line in a terminal, a line a minute elsewhere.

Everything is written by the thread of the tests, between two of them: it cannot garble what pytest writes.
"""

from __future__ import annotations

import functools
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import EditedCell
from executorch_goldens.files import untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.sweep.seconds import Seconds
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words.verdicts import reason

#: Seconds between two lines where there is no terminal, and between two states of a live line.
INTERVAL = 60.0
LIVE_INTERVAL = 0.5
#: Seconds of processor time in which a cell is judged: measured 0.03 to 0.1.
JUDGING = 0.1
#: Seconds of processor time after which the pace of a run counts as much as that of an idle machine.
SETTLED = 1.0
#: Cells of one cause and verdict that get a line each, and those of all causes.
MOST_ALIKE, MOST_LINES = 3, 10
#: Characters of a bar.
BAR = 20
#: Seconds between two lines about further exports where there is no terminal: of two steps, and of one.
STEP_INTERVALS = 5.0, 20.0
#: Verdicts that a person decides on; all others are something wrong.
DECIDED = ("changed", "renamed", "new")


class Screen(Protocol):
    """The part of pytest's terminal reporter that is used."""

    def rewrite(self, line: str, **markup: bool) -> None: ...
    def write_line(self, line: str, **markup: bool) -> None: ...
    def write(self, content: str, **markup: bool) -> None: ...


def forever() -> float:
    return math.inf


class Pulse:
    """Says now and then how far something is: in a terminal over one line, elsewhere a line a minute.

    Parameters
    ----------
    live
        Whether `screen` is a terminal, where a line can be written over.
    """

    def __init__(self, screen: Screen, live: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.screen = screen
        self.live = live
        self.clock = clock
        self._shown = -math.inf

    def beat(self, line: Callable[[], str]) -> None:
        """Show a line, unless one was shown a moment ago."""
        if self.clock() - self._shown < (LIVE_INTERVAL if self.live else INTERVAL):
            return
        self._shown = self.clock()
        self.say(line())

    def say(self, line: str) -> None:
        """Write over the live line, or one more."""
        if self.live:
            self.screen.rewrite(line[: shutil.get_terminal_size().columns - 1], erase=True)
        else:
            self.screen.write_line(line)

    def erase(self) -> None:
        """Erase the live line before other output."""
        if self.live:
            self.screen.rewrite("", erase=True)
            self.screen.write("\r")


class Progress(Pulse):
    """The progress of a run.

    Parameters
    ----------
    cells
        Cells that are checked.
    sweeps
        What exports them.
    seconds
        Remembered seconds of their exports.
    jobs
        Exports at a time.
    left
        Returns the seconds after which nothing more is waited for.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        sweeps: Sequence[Sweep],
        seconds: Seconds,
        jobs: int,
        screen: Screen,
        live: bool,
        clock: Callable[[], float] = time.monotonic,
        left: Callable[[], float] = forever,
    ) -> None:
        self.to_go = set(cells)
        self.count = len(self.to_go)
        self.sweeps = sweeps
        self.expected = functools.cache(seconds.expected)
        self.jobs = jobs
        self.left = left
        self.wrong = 0
        self.alike: Counter[tuple[str, str]] = Counter()
        self.lines = 0
        super().__init__(screen, live, clock)
        self._step = ""
        self._started = clock()

    def wait(self, sweep: Sweep, cell: Cell, left: Callable[[], float] = forever) -> bool:
        """Wait for the exports of `cell` while time is left, and show the progress; return whether they have come."""
        while not sweep.ready(cell, LIVE_INTERVAL):
            if left() <= 0:
                return False
            self.show(sweep)
        return True

    def judged(self, sweep: Sweep, cell: Cell, judged: Verdict | None, edited: EditedCell | None) -> None:
        """Note that `cell` was checked; show it unless it passes, or is like many that were shown.

        Parameters
        ----------
        judged
            None for a cell that got no verdict.
        edited
            Its difference from its golden, if that is known.
        """
        self.to_go.discard(cell)
        if judged is None or not judged.accepted:
            self.wrong += 1
            name, why = ("no verdict", "") if judged is None else (judged.name, reason(judged))
            alike = (edited.cause if edited is not None else "", name)
            self.alike[alike] += 1
            if self.alike[alike] <= MOST_ALIKE and self.lines < MOST_LINES:
                self.lines += 1
                self.erase()
                what = (edited.what if edited is not None else "") or why
                write_verdict(self.screen, name, f"{cell}: {what}".rstrip(": "))
        self.show(sweep)

    def passed(self, sweep: Sweep, cell: Cell) -> None:
        """Count a cell as done whose result is not printed yet."""
        self.to_go.discard(cell)
        self.show(sweep)

    def unshown(self) -> int:
        """Return how many cells that need a look got no line."""
        return self.wrong - self.lines

    def show(self, sweep: Sweep) -> None:
        """Show how far it is, unless that was done a moment ago."""
        self.beat(lambda: self.line(sweep.doing()))

    def step(self, what: str, done: int, steps: int, budget: float, took: float) -> None:
        """Show how far further exports are: a bar, and what is made now."""
        if not self.live and self.clock() - self._shown < STEP_INTERVALS[what == self._step]:
            return
        self._shown, self._step = self.clock(), what
        full = BAR * done // steps
        limit = f" of {budget:g} s" if math.isfinite(budget) else " s"
        self.say(f"[{'#' * full}{'.' * (BAR - full)}] {done} of {steps}, {took:.0f}{limit}: {what}")

    def seconds_left(self) -> float:
        """Return the time for what was asked for so far: expected seconds, at this run's pace."""
        work = [each for sweep in self.sweeps for each in sweep.work(self.expected)]
        judged, to_judge = JUDGING * (self.count - len(self.to_go)), JUDGING * len(self.to_go)
        done = judged + sum(min(expected, used) for expected, used, _ in work)
        left = to_judge + sum(max(expected - used, 0.0) for expected, used, _ in work)
        begun = sum(max(expected - used, 0.0) for expected, used, is_begun in work if is_begun)
        pace = (self.clock() - self._started + SETTLED / self.jobs) / (done + SETTLED)
        # What is begun comes to its end, though no time is left.
        return min(pace * left, max(self.left(), pace * begun))

    def line(self, doing: str) -> str:
        """Return one line: cells done and to go, time left, current exports."""
        done = self.count - len(self.to_go)
        wrong = f", {self.wrong} not passed" if self.wrong else ""
        left = f"{len(self.to_go)} to go, about {duration(self.seconds_left())}"
        return f"{done} of {count(self.count, 'cell')}{wrong}, {left}; {doing}"


def write_verdict(screen: Screen, verdict: str, what: str) -> None:
    """Write a line that begins with a verdict, in its colour where the screen has any (NO_COLOR, FORCE_COLOR)."""
    screen.write(verdict, **{"yellow" if verdict in DECIDED else "red": True})
    screen.write_line(untrusted.escape_ci(f": {what}"))


def duration(seconds: float) -> str:
    """Return a duration for people.

    >>> duration(9.6), duration(90), duration(7500)
    ('10 s', '2 min', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
