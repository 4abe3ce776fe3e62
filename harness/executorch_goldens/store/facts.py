"""Dependencies of an export, and checks that they are unchanged.

A record (`exporting.recording`) becomes a list of facts. An artifact is used again where all of its facts hold.
Places are named relative to what may be elsewhere: the repository, the environment, its Python, the harness.
"""

# ruff: noqa: PTH110, PTH116, PTH123, PTH208
# Thousands of paths a run: as text.
from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.exporting.recording import (
    ALL,
    FILE,
    LINK,
    LISTING,
    NOTHING,
    OUTPUTS,
    PART,
    PATH,
    VARIABLE,
    by_stem,
    matching,
    queried,
)
from executorch_goldens.files import durable
from executorch_goldens.store import functions

#: A file that is as young as this when it is read may change again without a new modification time.
SETTLED_NS = 2_000_000_000
#: By how much a file's time of change may lag behind the clock: a tick of the kernel; where it has no fraction of a
#: second, what such file systems round by.
LAG_NS = 50_000_000
ROUNDED_NS = 2_000_000_000

#: Variables that name places of a machine or a person, or that a variation sets: none may matter, and where one does,
#: it is asked for (`executorch_goldens.store.environment.VARIABLES`).
NO_VARIABLES = (
    *("PATH", "PYTHONPATH", "PYTHONHASHSEED", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHLVL", "_"),
    *("TMPDIR", "TEMP", "TMP", "COLUMNS", "LINES", "TERM", "VIRTUAL_ENV"),
    *("TZ", "LC_ALL", "HOSTNAME"),
    *OUTPUTS,
)


class UnsettledError(Exception):
    """A file that was changed while it may have been read; its path is the message."""


class Fact(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A dependency of an export, with the value it had.

    Attributes
    ----------
    kind
        See `executorch_goldens.exporting.recording`.
    place
        A path as `Places.named` has it, or the name of a variable.
    wanted
        Of a directory, the names that were looked for there; of a part of a file, the function; of a path, the query.
    value
        Digest of a file's content, of a part of it or of the names; what is at the path; the variable's value.
    """

    kind: str
    place: str
    wanted: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        if self.kind == VARIABLE:
            return "the names of all variables" if self.place == ALL else f"variable {self.place}"
        place = re.sub(r"^<path \d+>/?", "", self.place) or "."
        return f"the listing of {place}" if self.kind == LISTING else place


@dataclass(frozen=True)
class Record:
    """The dependencies that a process recorded.

    Attributes
    ----------
    began
        When it began to record, in nanoseconds.
    before
        File with the record of the process that it was forked from.
    facts
        Kind, place, what was looked for, what was seen.
    case
        The file and the function of the case, if it depends on no more of that file than the function does.
    """

    began: int
    before: Path | None
    facts: tuple[tuple[str, str, str, Any], ...]
    case: tuple[str, str] | None = None

    @classmethod
    def read(cls, file: Path) -> Record | None:
        """Return the content of `file`; None unless it is complete."""
        try:
            found = json.loads(file.read_bytes())
        except (OSError, ValueError):
            return None
        before = Path(found["before"]) if found["before"] is not None else None
        case = tuple(found["case"]) if found.get("case") is not None else None
        return cls(found["began"], before, tuple(map(tuple, found["facts"])), case)


@dataclass(frozen=True)
class Places:
    """Names of folders that may differ on another machine.

    Attributes
    ----------
    roots
        Name to directory. Of several around a path, the innermost names it.
    """

    roots: Mapping[str, Path]

    def named(self, path: str) -> str | None:
        """Return `path` with its root named; None for parents of a root, which reveal its place."""
        inside = [
            (len(str(root)), name) for name, root in self.roots.items() if f"{path}/".startswith(f"{root}/")
        ]
        if inside:
            _, name = max(inside)
            return f"<{name}>{path[len(str(self.roots[name])) :]}"
        around = any(f"{root}/".startswith(f"{path.rstrip('/')}/") for root in self.roots.values())
        return None if around else path

    def path(self, named: str) -> str:
        """Return the local path of a result of `named`."""
        if not named.startswith("<"):
            return named
        name, _, rest = named[1:].partition(">")
        return f"{self.roots[name]}{rest}" if name in self.roots else f"/dev/null/{named}"


#: Size, time of modification, time of change, inode.
State = tuple[int, int, int, int]


class Digests:
    """SHA-256 of files, remembered between runs with the state that changes when a file does."""

    def __init__(self, memory: Path | None = None) -> None:
        self.memory = memory
        self.known: dict[str, tuple[int, int, int, int, str]] = {}
        self.changed = False
        if memory is not None:
            try:
                self.known = msgspec.msgpack.decode(
                    memory.read_bytes(), type=dict[str, tuple[int, int, int, int, str]]
                )
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
                self.known = {}
        self._before = dict(self.known)
        self._parts: dict[tuple[str, str], str] = {}

    def of(self, file: str) -> str:
        """Return the digest of a file, `NOTHING` where there is none to read: a directory, a pipe."""
        try:
            state = state_of(file)
        except OSError:
            return NOTHING
        if (found := self.known.get(file)) is not None and found[:4] == state:
            return found[4]
        digest = digest_of(file)
        if max(state[1:3]) < time.time_ns() - SETTLED_NS:
            self.known[file] = (*state, digest)
            self.changed = True
        return digest

    def of_part(self, file: str, function: str) -> str:
        """Return the digest of the part of a module that a function depends on; that of the file if it is all of it."""
        whole = self.of(file)
        if (function, whole) not in self._parts:
            self._parts[function, whole] = _digest_of_part(file, function, whole)
        return self._parts[function, whole]

    def is_as_read(self, file: str, when_read: Sequence[int] | None, began: int) -> bool:
        """Return whether of a file only the time of change moved: a further name, as installers make, changes that.

        Parameters
        ----------
        when_read
            Its size, time of modification and inode when it was read; None if there was none.
        began
            Before it was read, in nanoseconds.
        """
        try:
            size, modified, _, inode = state_of(file)
        except OSError:
            return False
        if when_read is None or (size, modified, inode) != (*when_read,) or _is_late(modified, began):
            return False
        # Whoever writes to a file may put its time back.
        before = self._before.get(file)
        return before is None or (*before[:2], before[3]) != (*when_read,) or before[4] == self.of(file)

    def learn(self, files: Iterable[str]) -> None:
        """Digest files beside each other: hashing lets go of the interpreter's lock."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.of, files))

    def save(self) -> None:
        """Write the digests for the next run; raise OSError."""
        if self.memory is None or not self.changed:
            return
        kept = {file: known for file, known in self.known.items() if os.path.exists(file)}
        durable.replace(self.memory, msgspec.msgpack.encode(kept), synced=False)
        self.changed = False


def state_of(file: str) -> State:
    """Return the state that changes when a regular file does, without reading it; raise OSError."""
    found = os.stat(file)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), file)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def digest_of(file: str) -> str:
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return NOTHING


def changed_since(file: str, began: int) -> bool:
    """Return whether a file may have been read before its last change."""
    try:
        return _is_late(state_of(file)[2], began)
    except OSError:
        return False


def _is_late(at: int, began: int) -> bool:
    """Return whether a time of a file may be after `began`."""
    return at + (LAG_NS if at % 1_000_000_000 else ROUNDED_NS) >= began


def digest_of_names(names: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(names).encode(errors="surrogateescape")).hexdigest()


@dataclass
class View:
    """The current values, as exports of one environment would see them.

    Attributes
    ----------
    variables
        Of exporting processes.
    """

    places: Places
    digests: Digests
    variables: Mapping[str, str] = field(default_factory=dict)
    _stems: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def of(self, record: Record) -> tuple[Fact, ...]:
        """Return the facts of a record; raise `UnsettledError` where a file was changed while it was made."""
        files = {place: value for kind, place, _, value in record.facts if kind == FILE}
        self.digests.learn(files)
        for file, when_read in files.items():
            if changed_since(file, record.began) and not self.digests.is_as_read(
                file, when_read, record.began
            ):
                raise UnsettledError(file)
        return tuple(sorted(set(self._facts(record))))

    def _facts(self, record: Record) -> Iterator[Fact]:
        listings: dict[str, dict[str, list[str]]] = {}
        read = {place for kind, place, _, _ in record.facts if kind == FILE}
        for kind, place, wanted, value in record.facts:
            if kind == VARIABLE:
                if place == ALL:
                    yield Fact(VARIABLE, ALL, (), _variables(value.split("\0")))
                elif place not in NO_VARIABLES:
                    yield Fact(VARIABLE, place, (), _value(value))
            elif kind == LISTING:
                listings.setdefault(place, {})[wanted] = value
            elif kind == PATH and not wanted and place in read:
                # Its content says more.
                continue
            elif (named := self.places.named(place)) is not None:
                if kind == FILE and record.case is not None and place == record.case[0]:
                    yield Fact(PART, named, record.case[1:], self.digests.of_part(*record.case))
                elif kind == FILE:
                    yield Fact(FILE, named, (), self.digests.of(place))
                else:
                    yield Fact(PATH, named, (wanted,) if wanted else (), self._seen(value, wanted))
        for place, looked in listings.items():
            named = self.places.named(place)
            # Other machines have different neighbours of a root.
            if named is not None:
                every = tuple(sorted(looked))
                yield Fact(LISTING, named, every, digest_of_names(_names(looked, every)))

    def _seen(self, value: str, what: str) -> str:
        """Return what a query found, where a link leads to by the name of that place."""
        return self.places.named(value) or value if what == LINK else value

    def differing(self, facts: Sequence[Fact]) -> Fact | None:
        """Return the first of `facts` that is no more so; None where all hold."""
        return next((fact for fact in facts if self._now(fact) != fact.value), None)

    def _now(self, fact: Fact) -> str:
        if fact.kind == VARIABLE and fact.place == ALL:
            return _variables(self.variables)
        if fact.kind == VARIABLE:
            return _value(self.variables.get(fact.place))
        path = self.places.path(fact.place)
        if fact.kind == FILE:
            return self.digests.of(path)
        if fact.kind == PART:
            return self.digests.of_part(path, *fact.wanted)
        if fact.kind == PATH:
            what = "".join(fact.wanted)
            return self._seen(queried(path, what), what)
        if path not in self._stems:
            try:
                self._stems[path] = by_stem(os.listdir(path))
            except OSError:
                self._stems[path] = {}
        looked = {wanted: matching(self._stems[path], wanted) for wanted in fact.wanted}
        return digest_of_names(_names(looked, fact.wanted))


def _names(looked: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> Iterator[str]:
    """Yield a directory's entries for each name that was looked for."""
    for each in wanted:
        yield from (each, *looked[each], "")


def _digest_of_part(file: str, function: str, whole: str) -> str:
    """Return the digest of the part of a file that a function depends on; in doubt `whole`, the file's."""
    try:
        with open(file, "rb") as opened:
            content = opened.read()
        if hashlib.sha256(content).hexdigest() != whole:
            return whole
        part = functions.part(content.decode(), function)
    except (OSError, UnicodeDecodeError):
        return whole
    return whole if part is None else hashlib.sha256(part.encode()).hexdigest()


def _variables(names: Iterable[str]) -> str:
    """Return the names of all variables, those of no meaning aside."""
    return " ".join(sorted({*names} - {*NO_VARIABLES}))


def _value(value: str | None) -> str:
    return "unset" if value is None else f"={value}"


def identity(facts: Sequence[Fact]) -> str:
    """Return the name of a list of facts."""
    return hashlib.sha256(msgspec.msgpack.encode(facts)).hexdigest()
