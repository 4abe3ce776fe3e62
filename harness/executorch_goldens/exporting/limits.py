"""Limits of time that a busy machine does not reach: they count processor time, and have a much larger wall limit.

Nothing of torch is imported here: templates, sweeps and what judges them use it.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from executorch_goldens.files.wording import in_seconds

#: How many times its limit of processor time an export may take of wall time: what sleeps or waits for a lock takes no
#: processor time, and must end as well. On two cores, ten processes made an export six times as long, and twelve gave
#: one at low priority less than a tenth of a core.
WALL = 20.0

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


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and of all that it has started, in seconds; 0 where it is no more."""
    return sum(_ticks(process)) / os.sysconf("SC_CLK_TCK")


def _ticks(process: int) -> Iterator[int]:
    """Yield the clock ticks of each process of a tree, with those of its children that were waited for."""
    # Man 5 proc, /proc/PID/stat: fields 14 to 17, utime to cstime, after the name in parentheses. Any m.
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
        yield sum(map(int, fields[11:15]))
        for listing in Path(f"/proc/{process}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in listing.read_text(encoding="ascii").split():
                    yield from _ticks(int(child))


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
