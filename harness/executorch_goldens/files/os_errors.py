"""Errors of the operating system, in one line for a user: which file or folder, why, and the way out."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from executorch_goldens.errors import HarnessError

ROOM = "make room there, and run again"
FEWER = "raise the limit of open files (ulimit -n), or run fewer exports at a time (--jobs 1)"

#: Way out, by the error's number: an error with another number is a defect of the harness.
WAYS_OUT = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EROFS: "make it writable, or name another folder",
    errno.EACCES: "make it writable, or name another folder",
    errno.EPERM: "make it writable, or name another folder",
    errno.EMFILE: FEWER,
    errno.ENFILE: FEWER,
    errno.ENOMEM: "end other processes, or run fewer exports at a time (--jobs 1)",
    errno.EAGAIN: "end other processes, or raise the limit of them (ulimit -u)",
    errno.EIO: "look at the disk, and run again",
}


class OsRefusedError(HarnessError):
    """Something that the operating system does not let this process do; the message names it and the way out."""


def explain(error: OSError) -> str:
    """Return the message for an error of the system; empty for one that no user can fix."""
    if error.errno not in WAYS_OUT:
        return ""
    where = [os.fsdecode(name) for name in (error.filename2, error.filename) if isinstance(name, str | bytes)]
    return f"{': '.join([*where[:1], error.strerror or ''])}: {WAYS_OUT[error.errno]}"


@contextlib.contextmanager
def as_user_error() -> Iterator[None]:
    """Within it, such an error is an `OsRefusedError`."""
    try:
        yield
    except OSError as error:
        if not (words := explain(error)):
            raise
        raise OsRefusedError(words) from error
