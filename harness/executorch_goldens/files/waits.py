"""Says what a command waits for."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

#: Seconds after which a person wonders.
PATIENCE = 3.0


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def saying(what: str, write: Callable[[str], object] = _print) -> Iterator[None]:
    """Write what is done, once it has taken some seconds."""
    timer = threading.Timer(PATIENCE, write, (f"{what} …",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
