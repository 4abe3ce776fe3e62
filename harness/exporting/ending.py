"""Ends what a model does on an input on which it does not end by itself."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class EndlessError(Exception):
    """What was run did not end in time."""


@contextlib.contextmanager
def ending_within(seconds: float | None) -> Iterator[None]:
    """Raise `EndlessError` in what takes longer than `seconds`; None for no limit.

    Only in a main thread, and between two instructions of Python: a kernel is not interrupted.
    """
    if seconds is None:
        yield
        return

    def end(signum: int, frame: FrameType | None) -> None:
        raise EndlessError(f"not ended after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
