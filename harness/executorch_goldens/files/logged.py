"""Collects log lines of native engines (ExecuTorch's runtime, TOSA's reference model) for error messages."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

#: A message of the runtime (ExecuTorch, runtime/platform/log.cpp): file and line before the words. What it says of the
#: processor is no error, nor that 1.1.0 is built without a check. One of the reference model (tosa-tools 2026.2.1)
#: begins as an error.
MESSAGE = re.compile(
    r"^(?:\[(?!cpuinfo_utils)[\w.]+:\d+\] (?!InternalConsistency verification requested)|ERROR: )(?P<words>.*)$",
    re.MULTILINE,
)
STDERR = 2


def explained(how: str, log: str) -> str:
    """Return how a program ended, with the first error that the engine logged, in one line.

    >>> explained("RuntimeError: loading failed with error 0x23", "[program.cpp:30] too short")
    'RuntimeError: loading failed with error 0x23; too short'
    """
    logged = MESSAGE.search(log)
    words = [how] if logged is None else [how, logged["words"]]
    return "; ".join(" ".join(each.split()) for each in words)


def end() -> int | None:
    """Return how many bytes this process has written to stderr where that is a file, None where it is another thing."""
    try:
        return os.lseek(STDERR, 0, os.SEEK_CUR)
    except OSError:
        return None


def since(end: int | None) -> str:
    """Return the output to stderr after `end`, empty where it cannot be read."""
    if end is None:
        return ""
    # The reference model writes through C's buffers.
    ctypes.CDLL(None).fflush(None)
    try:
        return Path(f"/dev/fd/{STDERR}").read_bytes()[end:].decode(errors="replace")
    except OSError:
        return ""
