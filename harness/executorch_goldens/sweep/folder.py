"""The folder that a sweep works in, below the directory for temporary files; those of killed sweeps are deleted."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Self

import filelock

from executorch_goldens.files.os_errors import OsRefusedError

#: Begins the names of such folders.
PREFIX = "goldens-sweep-"
#: The file in it that its sweep holds locked: the system lets go of it with the process, however that ends.
LOCK = ".lock"


class Folder:
    """A folder of one sweep, from `make` to `delete`.

    Attributes
    ----------
    path
        The directory.
    """

    def __init__(self, path: Path, lock: filelock.BaseFileLock) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def make(cls) -> Folder:
        """Make a folder, and delete those whose sweeps were killed; raise OSError, OsRefusedError."""
        try:
            delete_left_over(Path(tempfile.gettempdir()))
        except FileNotFoundError as error:
            # There is no file: it tells apart those who look for one.
            raise OsRefusedError(
                f"{error.strerror}: make room in one of these, or name another by TMPDIR"
            ) from error
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX))
            made = path.stat()
            lock = filelock.FileLock(path / LOCK)
            lock.acquire()
            # Between the two, another process may have deleted it: the lock makes its folder again, open to everybody.
            if is_private(path, made):
                return cls(path, lock)
            lock.release()
            shutil.rmtree(path, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.delete()

    def delete(self) -> None:
        """Delete it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def is_private(path: Path, made: os.stat_result) -> bool:
    """Return whether `path` is still the folder that was `made`, private to this user."""
    try:
        now = path.lstat()
    except OSError:
        return False
    same = (now.st_dev, now.st_ino, now.st_uid) == (made.st_dev, made.st_ino, made.st_uid)
    return same and stat.S_IMODE(now.st_mode) == stat.S_IMODE(made.st_mode)


def delete_left_over(temporary: Path) -> None:
    """Delete the folders in `temporary` that sweeps of this user have left, and that no sweep holds any more."""
    for path in temporary.glob(f"{PREFIX}*"):
        lock = filelock.FileLock(path / LOCK)
        # Somebody else's, one that is gone by now, or that another process deletes.
        with contextlib.suppress(OSError, filelock.Timeout):
            if path.is_symlink() or path.stat().st_uid != os.getuid() or not (path / LOCK).exists():
                continue
            lock.acquire(timeout=0)
            shutil.rmtree(path, ignore_errors=True)
            lock.release()
