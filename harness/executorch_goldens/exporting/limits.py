"""Limits of time that a busy machine does not reach: they count processor time, and have a much larger wall limit.

Nothing of torch is imported here: templates, sweeps and what judges them use it.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from executorch_goldens.files.wording import in_seconds

#: How many times its limit of processor time something small may take of wall time, which may wait for a lock. On two
#: cores, ten processes made an export six times as long, and twelve gave one at low priority a tenth of a core.
WALL = 20.0

#: The share of its wall time that a process must compute, or else it is idle: it sleeps, or waits for something.
SHARE = 1 / WALL

#: Seconds that are as good as no limit, and that every system takes.
FOREVER = 2**31 - 1


def limit_processor(seconds: float) -> None:
    """Let the system end this process by SIGXCPU when it has taken so many seconds of processor time."""
    # Whatever handles the signal in a parent. By default it leaves a core file as well.
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = min(math.ceil(min(seconds, FOREVER)), hard if hard != resource.RLIM_INFINITY else FOREVER)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


class Idleness:
    """Looks from time to time whether a process gets on, with all that it has started.

    Attributes
    ----------
    used
        Seconds of processor time that they had taken at the last look.
    idle
        Seconds up to the last look in which they hardly computed and waited for no processor or disk. On a busy machine
        a process is not idle, however little it gets.
    """

    def __init__(self, process: int) -> None:
        self.process = process
        self.used = self.idle = 0.0
        self._looked = time.monotonic()

    def look(self, longest: float) -> None:
        """Look again; no more than `longest` seconds since the last look count as idle: the machine may have slept."""
        tree, now = list(_tree(self.process)), time.monotonic()
        used = max(self.used, sum(seconds for seconds, _ in tree))
        passed = now - self._looked
        gets_on = used - self.used >= SHARE * passed or any(states & {"R", "D"} for _, states in tree)
        self.idle = 0.0 if gets_on else self.idle + min(passed, longest)
        self.used, self._looked = used, now


def computed(process: int) -> float:
    """Return the seconds of processor time of a process, with all that it has started."""
    return sum(seconds for seconds, _ in _tree(process))


def _tree(process: int) -> Iterator[tuple[float, set[str]]]:
    """Yield of each process of a tree its seconds, with those of children waited for, and its threads' states."""
    # Man 5 proc, /proc/PID/stat: fields 3 and 14 to 17, utime to cstime, after the name in parentheses. Any m.
    with contextlib.suppress(OSError):
        fields, states, children = _fields(Path(f"/proc/{process}/stat")), set(), list[str]()
        for thread in Path(f"/proc/{process}/task").glob("*"):
            with contextlib.suppress(OSError):
                states.add(_fields(thread / "stat")[0])
                children += (thread / "children").read_text(encoding="ascii").split()
        yield sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"), states
        for child in children:
            yield from _tree(int(child))


def _fields(file: Path) -> list[str]:
    return file.read_text(errors="replace").rpartition(")")[2].split()


class EndlessError(Exception):
    """The model did not end within its time limit."""


@contextlib.contextmanager
def ending_within(seconds: float | None) -> Iterator[None]:
    """Raise `EndlessError` after `seconds` of processor time; None for no limit.

    It may take `WALL` times as many of wall time: what sleeps ends as well. Only in a main thread, and between two
    instructions of Python: a kernel is not interrupted.
    """
    if seconds is None:
        yield
        return

    def end(signum: int, frame: FrameType | None) -> None:
        raise EndlessError(f"not ended after {in_seconds(seconds)}")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, WALL * seconds),
    }
    before = {signum: signal.signal(signum, end) for signum in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for signum, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(signum, before[signum])
