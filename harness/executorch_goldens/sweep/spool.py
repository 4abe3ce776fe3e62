"""What exports left until somebody judges it: in one file without a name, which no other process can open."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple


class Range(NamedTuple):
    """Where something is in a `Spool`."""

    start: int
    length: int


class Spool:
    """Bytes that are added by one thread and taken by another, each once; what was taken needs no room for long."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - until `close`
        self._lock = threading.Lock()
        self._waiting = 0

    def add(self, source: io.FileIO) -> Range:
        """Add what is in a file; raise OSError."""
        source.seek(0)
        with self._lock:
            start = self._file.seek(0, io.SEEK_END)
            shutil.copyfileobj(source, self._file)
            self._waiting += 1
            return Range(start, self._file.tell() - start)

    def take(self, there: Range) -> bytes:
        """Return what was added there."""
        with self._lock:
            self._file.seek(there.start)
            content = self._file.read(there.length)
            self._waiting -= 1
            if not self._waiting:
                self._file.truncate(0)
            return content

    def close(self) -> None:
        self._file.close()


def whole(descriptor: int) -> bytes:
    """Return what is in a file, wherever it is read or written now."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
