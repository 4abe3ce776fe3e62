"""The store of artifacts: results of exports, by their request and all their dependencies.

A store is a directory outside of any repository::

    <root>/artifacts/<first two digits>/<key>   what an export made, checked by its SHA-256
    <root>/lists/<first two digits>/<digest>    facts that exports depended on: most of them are the same for many
    <root>/made/<first two digits>/<request>    artifacts, and lists, that answered a request
    <root>/last/<first two digits>/<name>       what was asked for when an export of that name was made last
    <root>/files/digests                        digests of files, by size, times and inode
    <root>/runs/<nanoseconds>-<uuid>            when a run began, which holds it locked until it ends

An entry is written aside and renamed, so that runs may share a store: there is a whole entry or none. What was used
since the first of them began is never evicted while a run may read it. Nothing that is read is ever executed:
all of it is MessagePack, decoded into dataclasses by their types.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import filelock
import msgspec

from executorch_goldens.artifact import Artifact, Failure, Lowered, Watched
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens.store.environment import Ingredients
from executorch_goldens.store.facts import Fact
from executorch_goldens.store.keys import digest

T = TypeVar("T")

#: Bytes that a store may take.
SIZE = 10 * 2**30

#: Level of zlib: entries of 1 are 8% larger than of 6, and take 0.4 of the time, which is the run's own.
COMPRESSION = 1
#: Fill level after an eviction, so that not every run evicts.
FULL = 0.9

#: Bytes that one entry may have, compressed or not: what a cell of a model of a hundred million weights takes.
LARGEST = 2**30

#: Number of artifacts remembered for one request: that many branches may be switched between.
REMEMBERED = 16
#: Folders of entries by digest, which are deleted when unused for long.
KEPT = ("artifacts", "lists", "made", "last")

#: The folder with a file for each run that uses the store.
RUNS = "runs"
#: Nanoseconds by which a file's time may lag behind the clock: the kernel's ticks, and file systems that count seconds.
CLOCK_NS = 2 * 10**9
#: Nanoseconds that a run may last; what began a day ago serves a cluster, and reads an entry as soon as it has used it.
LONGEST_NS = 24 * 3600 * 10**9

#: First bytes of an entry. The SHA-256 of its key and its content comes next, then the content.
MAGIC = b"executorch-goldens artifact 2\n"
DIGEST_BYTES = 32
#: Form of a key: a SHA-256.
KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(eq=False)
class StoreError(HarnessError):
    """A store cannot be used: its directory, the defect, and the way out."""

    root: Path
    what: str
    way_out: str = "make it writable"

    def __str__(self) -> str:
        return (
            f"the cache {self.root} {self.what}: {self.way_out}, pass --cache DIR for another, or --cache off"
        )


@dataclass(frozen=True)
class StoredExport:
    """An artifact with the cost of its export; see `executorch_goldens.artifact.Outcome`."""

    artifact: Artifact
    seconds: float
    peak_mb: float
    core_seconds: float


class Made(msgspec.Struct, frozen=True, array_like=True):
    """An artifact that answers a request where every fact of its lists holds.

    Attributes
    ----------
    key
        Of the artifact.
    lists
        Of facts: that of its template, and its own.
    """

    key: str
    lists: tuple[str, ...]


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """An entry as it is encoded: of `lowered` and `failure` one is None."""

    ingredients: Ingredients
    lowered: Lowered | None
    failure: Failure | None
    patches: tuple[str, ...]
    shortcuts: tuple[str, ...]
    watched: Watched | None
    inside_seconds: float
    seconds: float
    peak_mb: float
    core_seconds: float


class Store:
    """Results of exports, in a directory.

    Attributes
    ----------
    damaged
        Keys of the entries that were damaged, and are no more.
    """

    def __init__(self, root: Path, size: int = SIZE) -> None:
        self.root = root.absolute()
        self.size = size
        self.damaged: list[str] = []
        self._run: filelock.BaseFileLock | None = None

    def open(self) -> None:
        """Prepare the directory, and keep others from deleting used entries until `close`; raise `StoreError`."""
        try:
            for folder in (*KEPT, "files", RUNS):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            probe = self.root / f"probe-{uuid.uuid4().hex}"
            probe.write_bytes(b"")
            probe.unlink()
            self._run = filelock.FileLock(self.root / RUNS / f"{time.time_ns()}-{uuid.uuid4().hex}")
            self._run.acquire()
        except OSError as error:
            raise StoreError(self.root, f"cannot be written ({error.strerror})") from error

    def close(self) -> None:
        """Let others delete the used entries, as the end of the process does."""
        if self._run is not None:
            Path(self._run.lock_file).unlink(missing_ok=True)
            self._run.release()
            self._run = None

    def path(self, key: str, folder: str = "artifacts") -> Path:
        """Return the path of a key's entry; raise StoreError for an invalid key, which could lead elsewhere."""
        if not KEY.fullmatch(key):
            raise StoreError(self.root, f"is asked for {key!r:.80}, which is no key", "run again")
        return self.root / folder / key[:2] / key

    def holds(self, key: str) -> bool:
        """Return whether there is an entry, damaged or not."""
        return self.path(key).exists()

    def is_sound(self, key: str) -> bool:
        """Return whether there is a sound entry, which then counts as used now; a damaged one is deleted."""
        if self._content(key) is None:
            return False
        with contextlib.suppress(OSError):
            os.utime(self.path(key))
        return True

    def get(self, key: str) -> StoredExport | None:
        """Return the entry under `key`; None if it is missing or damaged; a damaged one is deleted."""
        entry = self._entry(key)
        if entry is None:
            return None
        made = entry.lowered if entry.lowered is not None else entry.failure
        assert made is not None
        artifact = Artifact(made, entry.patches, entry.inside_seconds, entry.watched, entry.shortcuts)
        return StoredExport(artifact, entry.seconds, entry.peak_mb, entry.core_seconds)

    def _entry(self, key: str) -> _Entry | None:
        content = self._content(key)
        if content is None:
            return None
        try:
            entry = msgspec.msgpack.decode(_unpacked(content), type=_Entry)
            if (entry.lowered is None) == (entry.failure is None):
                raise ValueError("it is neither of a program nor of a failure")
            return entry
        except (zlib.error, ValueError, TypeError, RecursionError) as error:
            way_out = f"delete {self.path(key)}"
            raise StoreError(
                self.root, f"has an entry {key} that a different harness wrote ({error})", way_out
            ) from error

    def _content(self, key: str, path: Path | None = None) -> bytes | None:
        path = path or self.path(key)
        try:
            whole = untrusted.contents(path, LARGEST)
        except FileNotFoundError:
            return None
        except (OSError, UntrustedError):
            whole = b""
        head, content = whole[: len(MAGIC) + DIGEST_BYTES], whole[len(MAGIC) + DIGEST_BYTES :]
        if head == _head(key, content):
            return content
        self.damaged.append(key)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, ingredients: Ingredients, kept: StoredExport) -> str:
        """Keep an artifact under the digest of `ingredients` and return that; raise `StoreError`."""
        made = kept.artifact.result
        entry = _Entry(
            ingredients,
            made if isinstance(made, Lowered) else None,
            made if isinstance(made, Failure) else None,
            kept.artifact.patches,
            kept.artifact.shortcuts,
            kept.artifact.watched,
            kept.artifact.seconds,
            kept.seconds,
            kept.peak_mb,
            kept.core_seconds,
        )
        key = digest(ingredients)
        content = zlib.compress(msgspec.msgpack.encode(entry), COMPRESSION)
        self._write(self.path(key), _head(key, content) + content)
        return key

    def content(self, key: str, folder: str = "artifacts") -> bytes | None:
        """Return the bytes of an entry or a list for `add`, None where there is no sound one."""
        content = self._content(key, self.path(key, folder))
        return None if content is None else _head(key, content) + content

    def add(self, key: str, content: bytes, folder: str = "artifacts") -> None:
        """Keep an entry or a list of another store; raise `StoreError`. One that is damaged is never read."""
        self._write(self.path(key, folder), content)

    def put_list(self, name: str, facts: Sequence[Fact]) -> None:
        """Keep a list of facts; raise `StoreError`. One that is there already counts as used now."""
        path = self.path(name, "lists")
        try:
            os.utime(path)
        except OSError:
            content = zlib.compress(msgspec.msgpack.encode(facts), COMPRESSION)
            self._write(path, _head(name, content) + content)

    def facts(self, name: str) -> tuple[Fact, ...] | None:
        """Return a list of facts; None where there is none any more."""
        path = self.path(name, "lists")
        content = self._content(name, path)
        if content is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        with contextlib.suppress(zlib.error, ValueError):
            return msgspec.msgpack.decode(_unpacked(content), type=tuple[Fact, ...])
        return None

    def remember(self, request: str, made: Made) -> None:
        """Let `made` be the first answer to a request; raise `StoreError`."""
        others = [each for each in self.made(request) if each.lists != made.lists]
        self._note("made", request, [made, *others[: REMEMBERED - 1]])

    def made(self, request: str) -> list[Made]:
        """Return earlier answers to a request, the latest first."""
        return self._noted("made", request, list[Made]) or []

    def note_last(self, name: str, ingredients: Ingredients) -> None:
        """Remember the request of the export called `name`; raise `StoreError`."""
        self._note("last", hashlib.sha256(name.encode()).hexdigest(), ingredients)

    def last(self, name: str) -> Ingredients | None:
        """Return the request of the last export with this name."""
        return self._noted("last", hashlib.sha256(name.encode()).hexdigest(), Ingredients)

    def _note(self, folder: str, name: str, what: object) -> None:
        content = msgspec.msgpack.encode(what)
        self._write(self.path(name, folder), _head(name, content) + content)

    def _noted(self, folder: str, name: str, kind: type[T]) -> T | None:
        path = self.path(name, folder)
        content = self._content(name, path)
        if content is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        with contextlib.suppress(ValueError):
            return msgspec.msgpack.decode(content, type=kind)
        return None

    def _write(self, path: Path, content: bytes) -> None:
        try:
            durable.replace(path, content, synced=False)
        except OSError as error:
            raise StoreError(self.root, f"cannot be written ({error.strerror})") from error

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield every file that is kept, and those that an interrupted run has left."""
        for folder in KEPT:
            for path in (self.root / folder).glob("*/*"):
                with contextlib.suppress(OSError):
                    yield path, path.stat()

    def _first_began(self) -> float:
        """Return when the first of the other runs began that use the store now, in nanoseconds; infinity for none."""
        began = []
        for path in (self.root / RUNS).iterdir():
            if self._run is not None and path == Path(self._run.lock_file):
                continue
            lock = filelock.FileLock(path)
            try:
                lock.acquire(timeout=0)
            except (filelock.Timeout, OSError):
                # It is in use, or another user's, which cannot be checked.
                with contextlib.suppress(ValueError):
                    began.append(int(path.name.partition("-")[0]) - CLOCK_NS)
                continue
            # Its run was killed.
            path.unlink(missing_ok=True)
            lock.release()
        return min((each for each in began if each > time.time_ns() - LONGEST_NS), default=math.inf)

    def evict(self) -> int:
        """Delete the least recently used entries until the store fits its size; return how many.

        Entries that another run may have used stay: the last of these runs deletes them.
        """
        lock = filelock.FileLock(self.root / "evicting.lock")
        try:
            lock.acquire(timeout=0)
        except (filelock.Timeout, OSError):
            # Someone else does, or nothing can be deleted.
            return 0
        with lock:
            found = sorted(self.entries(), key=lambda each: each[1].st_mtime_ns)
            taken = sum(stat.st_size for _, stat in found)
            evicted = 0
            if taken <= self.size:
                return 0
            began = self._first_began()
            for path, stat in found:
                if taken <= self.size * FULL or stat.st_mtime_ns >= began:
                    break
                with contextlib.suppress(OSError):
                    path.unlink()
                    evicted += 1
                taken -= stat.st_size
            return evicted


def _unpacked(content: bytes) -> bytes:
    """Return decompressed data; raise zlib.error, ValueError."""
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(content, LARGEST)
    if not unpacking.eof:
        raise ValueError(f"it is cut off, or has more than {LARGEST:,} bytes")
    return unpacked


def _head(key: str, content: bytes) -> bytes:
    """Return the header of an entry: it depends on key and content."""
    return MAGIC + hashlib.sha256(key.encode() + content).digest()


def default_root() -> Path:
    """Return where the store is by default: in the cache directory of the person (XDG Base Directory)."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "executorch-goldens"
