"""Cleans up children on SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

#: Signals that ask a process to end, beside that of Ctrl-C. A second one ends it at once.
ASKING = (signal.SIGTERM, signal.SIGHUP)

#: Exit code of a command that Ctrl-C has ended: 128 and the signal's number, as shells have it (POSIX, sh, 2.8.2).
INTERRUPTED = 128 + signal.SIGINT

#: The same of one whose output nobody reads any more.
UNREAD = 128 + signal.SIGPIPE


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Within it, such a signal is a KeyboardInterrupt; when all is in order, the process dies of the signal."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {}
    if threading.current_thread() is threading.main_thread():
        # Whoever has them ignored (nohup) goes on ignoring them.
        before = {
            number: signal.signal(number, interrupt)
            for number in ASKING
            if signal.getsignal(number) is signal.SIG_DFL
        }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            # A process that dies of a signal flushes nothing.
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os.kill(os.getpid(), received[0])
