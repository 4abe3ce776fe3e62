"""Limits the time of a model's run."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from executorch_goldens.exporting.limits import WALL
from executorch_goldens.files.wording import in_seconds


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
