"""Writes files and folders so that whoever reads them finds the old one or the new one, whole.

That holds when the writing process is killed at any moment, when the disk is full, and after a power cut: what is
written aside is on the disk before it gets its name, and the name is there before a writer returns. A rename is in no
file, but in its folder, and on the disk once that is synced (man 2 fsync, "Calling fsync() does not necessarily ensure
that the entry in the directory containing the file has also reached disk").
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

#: Ends the name of what is being written.
ASIDE = ".new~"


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk; raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing; raise OSError."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def write_new(path: Path, content: str | bytes | Iterable[str], *, synced: bool = True) -> None:
    """Write a file that nobody looks for yet; its name is on the disk when its folder is synced; raise OSError.

    Characters that UTF-8 cannot encode, half of a pair of UTF-16, are escaped.
    """
    with path.open("wb") as file:
        for piece in [content] if isinstance(content, str | bytes) else content:
            file.write(piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def replace(path: Path, content: str | bytes | Iterable[str], *, synced: bool = True) -> None:
    """Write a file in the place of one that may be there; on an error that one stays; raise OSError.

    Parameters
    ----------
    content
        Whole, or in pieces that are written as they are made; an error in making one is raised.
    synced
        Whether it is to outlast a power cut: what can be made again, and is known to be damaged, need not.
    """
    if synced:
        make_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    # Of this thread alone: two may write the same file at once.
    aside = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident():x}{ASIDE}")
    try:
        write_new(aside, content, synced=synced)
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def delete_left_over(folder: Path) -> None:
    """Delete the files that writers into `folder` were killed at; only for a process that alone writes there."""
    for path in folder.glob(f"*{ASIDE}"):
        if path.is_file():
            path.unlink(missing_ok=True)
