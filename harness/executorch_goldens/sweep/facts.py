"""Dependencies of an export, and whether they are unchanged: a record (`exporting.recording`) becomes facts."""

# ruff: noqa: PTH110, PTH116, PTH123
# Thousands of paths a run: as text.
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from executorch_goldens.exporting.recording import FILE, NOTHING, SETTLED_NS, VARIABLE, look, state_when_read
from executorch_goldens.files import durable

#: By how much a file's time of change may lag behind the clock: a tick of the kernel; where it has no fraction of a
#: second, what such file systems round by.
LAG_NS, ROUNDED_NS = 50_000_000, 2_000_000_000

#: Size, time of modification, time of change and inode of a file: a change of it changes one of them.
State = tuple[int, int, int, int]


class UnknownDependencyError(Exception):
    """Some dependency of an export is not known; the message says why, `changed` is the file that is not the same."""

    def __init__(self, message: str, changed: str = "") -> None:
        super().__init__(message)
        self.changed = changed


class Fact(NamedTuple):
    """A dependency: `FILE` or `LOOK`, its place (`View.named`), and what was there, of a file the SHA-256."""

    kind: str
    place: str
    value: str

    def __str__(self) -> str:
        place = re.sub(r"^<path \d+>/?", "", self.place) or "."
        return f"variable {place[1:]}" if place.startswith(VARIABLE) else place


class Digests:
    """SHA-256 of files, remembered between runs in the file `memory`."""

    def __init__(self, memory: Path) -> None:
        self.memory = memory
        self.known: dict[str, tuple[State, str]] = {}
        self.rewritten: set[str] = set()
        with contextlib.suppress(OSError, ValueError):
            self.known = msgspec.msgpack.decode(memory.read_bytes(), type=dict[str, tuple[State, str]])

    def digest(self, file: str) -> str:
        """Return the digest of a file, `NOTHING` where there is none to read: a directory, a pipe."""
        state = state_of(file)
        if state is None:
            return NOTHING
        if (known := self.known.get(file)) is not None and known[0] == state:
            return known[1]
        try:
            with open(file, "rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError:
            return NOTHING
        # Whoever writes to a file may put its time back; one that only got a further name has the same content.
        if (
            known is not None
            and (*known[0][:2], known[0][3]) == (*state[:2], state[3])
            and known[1] != digest
        ):
            self.rewritten.add(file)
        if max(state[1:3]) < time.time_ns() - SETTLED_NS:
            self.known[file] = (state, digest)
        return digest

    def save(self) -> None:
        """Write the digests for the next run; raise OSError."""
        known = {file: known for file, known in self.known.items() if os.path.exists(file)}
        durable.replace(self.memory, msgspec.msgpack.encode(known), synced=False)


def state_of(file: str) -> State | None:
    """Return the state of a regular file; None where there is none."""
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(file)
        if stat.S_ISREG(found.st_mode):
            return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return None


def changed_since(file: str, began: int) -> bool:
    """Return whether a file may have been read before it was last modified."""
    state = state_of(file)
    return state is not None and state[1] + (LAG_NS if state[1] % 1_000_000_000 else ROUNDED_NS) >= began


@dataclass(frozen=True)
class View:
    """The current values, as exports with these variables see them; `roots` name folders that may be elsewhere."""

    roots: Mapping[str, Path]
    digests: Digests
    variables: Mapping[str, str]

    def named(self, path: str) -> str | None:
        """Return `path` with its innermost root named; None for parents of a root, which reveal its place."""
        for name, root in sorted(self.roots.items(), key=lambda each: -len(str(each[1]))):
            if f"{path}/".startswith(f"{root}/"):
                return f"<{name}>{path[len(str(root)) :]}"
        around = any(f"{root}/".startswith(f"{path.rstrip('/')}/") for root in self.roots.values())
        return None if around else path

    def path(self, named: str) -> str:
        """Return the local path of a result of `named`."""
        name, _, rest = named[1:].partition(">")
        return f"{self.roots.get(name, '/dev/null')}{rest}" if named.startswith("<") else named

    def facts(self, record: Path) -> tuple[tuple[Fact, ...], Path | None]:
        """Return the facts of a record, and where its template left its own; raise `UnknownDependencyError`."""
        try:
            (began, before), *listed, end = map(json.loads, record.read_bytes().splitlines())
            found = [(kind, place, was, since[0] if since else began) for kind, place, was, *since in listed]
        except (OSError, ValueError, TypeError):
            end = None
        if end != []:
            raise UnknownDependencyError(end if isinstance(end, str) else f"{record} has no end")
        files = [place for kind, place, _, _ in found if kind == FILE]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            # Hashing lets go of the interpreter's lock.
            digests = dict(zip(files, pool.map(self.digests.digest, files), strict=True))
        for kind, place, was, since in found:
            if kind == FILE and (
                was != state_when_read(place)
                or changed_since(place, since)
                or place in self.digests.rewritten
            ):
                raise UnknownDependencyError(f"{place} changed while exports were made", place)
        facts = {
            Fact(kind, named, digests[place] if kind == FILE else self._linked(value))
            for kind, place, value, _ in found
            # Other machines have different neighbours of a root.
            if (named := self.named(place)) is not None
        }
        return tuple(sorted(facts)), Path(before) if before is not None else None

    def differing(self, facts: Sequence[Fact]) -> Fact | None:
        """Return the first of `facts` that is no more so; None where all hold."""
        return next((fact for fact in facts if self._now(fact) != fact.value), None)

    def _now(self, fact: Fact) -> str:
        path = self.path(fact.place)
        return self.digests.digest(path) if fact.kind == FILE else self._linked(look(path, self.variables))

    def _linked(self, value: str) -> str:
        """Return a value of a `LOOK` with the place named that a link leads to."""
        what, arrow, target = value.partition(" -> ")
        return f"{what}{arrow}{self.named(target) or target}"
