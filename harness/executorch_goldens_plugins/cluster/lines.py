"""What the run and its client write to each other: neither waits for the other to read."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Mapping
from typing import IO, Any


class Lines:
    """Writes messages, a line of JSON each, on a thread of its own, however slowly they are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._waiting: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="lines", daemon=True)
        self._writer.start()

    def add(self, message: Mapping[str, Any]) -> None:
        """Write a message as soon as everything before has been read."""
        self._waiting.put(message)

    def finish(self) -> None:
        """Wait until every message is with its reader, or the reader is no more."""
        self._waiting.put(None)
        self._writer.join()

    def _write(self) -> None:
        # Where the reader is no more, nobody waits for a message.
        with contextlib.suppress(BrokenPipeError):
            while (message := self._waiting.get()) is not None:
                self._stream.write(json.dumps(message).encode() + b"\n")
                self._stream.flush()
