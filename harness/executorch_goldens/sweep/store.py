"""The cache: what exports made, by their request and their dependencies, in a directory outside of any repository.

::

    <root>/exports/<request>/<name>[-<name>]   an export, by the names of its lists of facts
    <root>/facts/<name>                        facts that exports depended on: most of them are the same for many
    <root>/digests                             digests of files (`sweep.facts.Digests`)

An entry is written aside and renamed, so that runs may share a store: there is a whole entry or none. Nothing that is
read is ever executed: an entry is MessagePack, decoded by its types, after a SHA-256 of its key and the rest of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.artifact import Artifact, Cell, Outcome, decoded, encoded
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.sweep.facts import Fact

#: Bytes that a store may take, and how much of that after an eviction, so that not every run evicts.
SIZE, FULL = 10 * 2**30, 0.9
#: Nanoseconds since its last use in which an entry is not evicted: a run may be about to read it.
IN_USE_NS = 24 * 3600 * 10**9
#: Level of zlib: entries of 1 are 8% larger than of 6, and take 0.4 of the time, which is the run's own.
COMPRESSION = 1
#: Bytes that one entry may have, compressed or not: what a cell of a model of a hundred million weights takes.
LARGEST = 2**30
#: Number of answers to one request that are looked at: that many branches may be switched between.
REMEMBERED = 16
KEY = re.compile(r"(facts|exports/[0-9a-f]{64})/[0-9a-f]{64}(-[0-9a-f]{64})?")


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


class Store:
    """A cache; `damaged` are the keys of entries that were damaged, and are no more."""

    def __init__(self, root: Path, size: int = SIZE) -> None:
        self.root = root.absolute()
        self.size = size
        self.damaged: list[str] = []

    def path(self, key: str) -> Path:
        """Return the path of an entry; raise StoreError for an invalid key, which could lead elsewhere."""
        if not KEY.fullmatch(key):
            raise StoreError(self.root, f"is asked for {key!r:.80}, which is no key", "run again")
        return self.root / key

    def add(self, key: str, content: bytes) -> None:
        """Keep an entry as `content` returns it; raise `StoreError`. One that is damaged is never read."""
        try:
            durable.replace(self.path(key), content, synced=False)
        except OSError as error:
            raise StoreError(self.root, f"cannot be written ({error.strerror})") from error

    def content(self, key: str) -> bytes | None:
        """Return the bytes of an entry, which counts as used now; None where it is missing, or was damaged."""
        path = self.path(key)
        with contextlib.suppress(OSError, untrusted.UntrustedError):
            whole = untrusted.contents(path, LARGEST)
            if whole == signed(key, whole[32:]):
                os.utime(path)
                return whole
        self._delete(key)
        return None

    def _delete(self, key: str) -> None:
        with contextlib.suppress(OSError):
            self.path(key).unlink()
            self.damaged.append(key)

    def _put(self, key: str, what: object) -> None:
        self.add(key, signed(key, zlib.compress(msgspec.msgpack.encode(what), COMPRESSION)))

    def _get(self, key: str, kind: Any) -> Any:
        if (whole := self.content(key)) is None:
            return None
        unpacking = zlib.decompressobj()
        with contextlib.suppress(zlib.error, ValueError, TypeError, RecursionError):
            # What is cut off, or longer than an entry may be, cannot be decoded.
            return msgspec.msgpack.decode(unpacking.decompress(whole[32:], LARGEST), type=kind)
        self._delete(key)
        return None

    def put(self, request: str, lists: Sequence[str], outcome: Outcome) -> str:
        """Keep an export, which answers a request while all facts of its lists hold; return its key."""
        assert isinstance(outcome.result, Artifact)
        key = f"exports/{request}/{'-'.join(lists)}"
        costs = (outcome.seconds, outcome.peak_mb, outcome.core_seconds)
        self._put(key, (encoded(outcome.result), costs))
        return key

    def get(self, key: str, cell: Cell, variation: str) -> Outcome | None:
        """Return an export of a cell under a variation; None if it is missing or damaged."""
        found = self._get(key, tuple[bytes, tuple[float, float, float]])
        if found is None:
            return None
        with contextlib.suppress(ValueError):
            seconds, peak_mb, core_seconds = found[1]
            return Outcome(cell, variation, decoded(found[0]), seconds, peak_mb, core_seconds, reused=True)
        self._delete(key)
        return None

    def answers(self, request: str) -> list[str]:
        """Return the keys of earlier answers to a request, the one used last first."""
        found = []
        for path in self.path(f"exports/{request}/{'0' * 64}").parent.glob("*"):
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime_ns, f"exports/{request}/{path.name}"))
        return [key for _, key in sorted(found, reverse=True) if KEY.fullmatch(key)][:REMEMBERED]

    def put_facts(self, facts: Sequence[Fact]) -> str:
        """Keep a list of facts, and return its name in the keys of exports."""
        name = hashlib.sha256(msgspec.msgpack.encode(facts)).hexdigest()
        if self.content(f"facts/{name}") is None:
            self._put(f"facts/{name}", facts)
        return name

    def facts(self, key: str) -> tuple[Fact, ...] | None:
        """Return a list of facts; None where there is none any more."""
        found: tuple[Fact, ...] | None = self._get(key, tuple[Fact, ...])
        return found

    def evict(self) -> None:
        """Delete the least recently used entries until the store fits its size."""
        found = []
        for path in (*self.root.glob("exports/*/*"), *self.root.glob("facts/*")):
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        taken = sum(size for _, size, _ in found)
        most = self.size * FULL if taken > self.size else self.size
        for used, size, path in sorted(found):
            if taken <= most or used > time.time_ns() - IN_USE_NS:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            taken -= size


def facts_of(*keys: str) -> list[str]:
    """Return the keys of the lists of facts of exports, each once."""
    names = dict.fromkeys(name for key in keys for name in key.rpartition("/")[2].split("-"))
    return [f"facts/{name}" for name in names]


def signed(key: str, content: bytes) -> bytes:
    """Return the bytes of an entry."""
    return hashlib.sha256(key.encode() + content).digest() + content


def default_root() -> Path:
    """Return where the store is by default: in the cache directory of the person (XDG Base Directory)."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "executorch-goldens"
