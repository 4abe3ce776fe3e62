"""A power cut at any moment of an update: its writes are recorded, and every possible disk is made from them.

What counts is what POSIX promises, not what one file system does beyond it. The bytes of a file are on the disk once
it is synced; before that there may be none of them, or a part. Names are in a folder: made, renamed and deleted in
order, up to any moment since the folder was synced, each folder by itself. The disk after a cut is one of many. It is
the model of Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014), with folders that keep their order.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.goldens import golden
from lab.faults.place import LostError, Place, demand
from lab.faults.updating import Update

#: Most disks that are made for one moment.
MOST = 16

_CALL = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_DESCRIPTOR = re.compile(r"^(-?\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2}|[^>])*)>")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass(frozen=True)
class Operation:
    """Something that a process did: ``create``, ``write``, ``sync``, ``mkdir``, ``rename``, ``unlink``, ``rmdir``.

    Attributes
    ----------
    data
        Of a write, which appends: nothing else is written here.
    to
        Of a rename.
    """

    kind: str
    path: Path
    data: bytes = b""
    to: Path | None = None


def recorded(update: Update, folder: Path) -> list[Operation]:
    """Run the command under strace, and return its operations below `folder`."""
    with update.begun(folder) as place:
        log = place.folder.with_name("operations")
        calls = "openat,write,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir"
        known = ",".join(
            f"?{name}" for name in (*calls.split(","), "ftruncate", "pwrite64", "link", "linkat")
        )
        strace = [
            "strace",
            "-f",
            "-qq",
            "-y",
            "-xx",
            "-s",
            "10000000",
            "-o",
            str(log),
            "-e",
            f"trace={known}",
        ]
        ended = place.finish(
            place.start([*strace, sys.executable, "-m", "executorch_goldens", *update.words(place)])
        )
        update.demand_new(place, "recorded", ended.output)
        lines = log.read_text(errors="replace").splitlines()
        log.unlink()
    return [operation for line in lines if (operation := _operation(line, folder)) is not None]


def _operation(line: str, folder: Path) -> Operation | None:
    """Return the operation below `folder` in a line of strace's; raise `LostError` for an unknown one."""
    match = _CALL.match(line)
    if match is None or int(match[3]) < 0:
        return None
    name, words, *_ = match.groups()
    at = _DESCRIPTOR.match(words)
    base = Path(os.fsdecode(_bytes(at[2]))) if at is not None and at[2].startswith("\\x") else None
    texts = [_bytes(text) for text, _ in _TEXT.findall(words)]
    if name in ("write", "fsync", "fdatasync", "ftruncate", "pwrite64"):
        if base is None or not base.is_relative_to(folder):
            return None
        demand(name in ("write", "fsync", "fdatasync"), f"not understood: {line[:200]}")
        return Operation("write", base, texts[0]) if name == "write" else Operation("sync", base)
    paths = [(base or Path.cwd()) / os.fsdecode(text) for text in texts]
    if not paths or not any(path.is_relative_to(folder) for path in paths):
        return None
    demand(not name.startswith("link"), f"not understood: {line[:200]}")
    if name == "openat":
        made = "O_CREAT" in words and "O_TRUNC" in words
        return Operation("create", paths[0]) if made else None
    if name.startswith("rename"):
        return Operation("rename", paths[0], to=paths[1])
    removed = name == "rmdir" or "AT_REMOVEDIR" in words
    kind = "mkdir" if name.startswith("mkdir") else "rmdir" if removed else "unlink"
    return Operation(kind, paths[0])


@dataclass(eq=False)
class File:
    """A file: its content, and how much of it is certainly on the disk."""

    data: bytes = b""
    synced: bytes = b""


@dataclass(eq=False)
class Folder:
    """A folder: its names after each change, from the last one that is certainly on the disk."""

    states: list[dict[str, File | Folder]] = field(default_factory=lambda: [{}])

    @property
    def names(self) -> dict[str, File | Folder]:
        return self.states[-1]

    def change(self, **_: object) -> dict[str, File | Folder]:
        """Return the names for one more change."""
        self.states.append(dict(self.names))
        return self.names


class Disk:
    """The files below a folder as a process sees them, and every disk that a power cut may leave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = _read(root)

    def _at(self, path: Path) -> tuple[Folder, str]:
        folder = self.top
        *parts, name = path.relative_to(self.root).parts
        for part in parts:
            below = folder.names[part]
            assert isinstance(below, Folder)
            folder = below
        return folder, name

    def do(self, operation: Operation) -> None:
        """Carry out an operation."""
        folder, name = self._at(operation.path)
        there = folder.names.get(name)
        if operation.kind == "create":
            if isinstance(there, File):
                there.data = b""
                there.synced = b""
            else:
                folder.change()[name] = File()
        elif operation.kind == "write":
            assert isinstance(there, File)
            there.data += operation.data
        elif operation.kind == "sync":
            if isinstance(there, File):
                there.synced = there.data
            elif isinstance(there, Folder):
                del there.states[:-1]
        elif operation.kind == "mkdir":
            folder.change()[name] = Folder()
        elif operation.kind == "rename":
            assert operation.to is not None
            assert there is not None
            other, target = self._at(operation.to)
            if other is folder:
                names = folder.change()
                del names[name]
                names[target] = there
            else:
                other.change()[target] = there
                del folder.change()[name]
        else:
            del folder.change()[name]

    def after_a_cut(self) -> Iterator[Folder]:
        """Yield possible disks: the least, the most, and states between, `MOST` in all."""
        folders, files = list(_folders(self.top)), list(_files(self.top))
        unsure = [folder for folder in folders if len(folder.states) > 1]
        torn = [file for file in files if file.data != file.synced]
        choices = [range(len(folder.states)) for folder in unsure] + [range(3) for _ in torn]
        for chosen in itertools.islice(_spread(choices), MOST):
            states = dict(zip(map(id, unsure), chosen, strict=False))
            contents = dict(zip(map(id, torn), chosen[len(unsure) :], strict=True))
            yield _chosen(self.top, states, contents)


def _spread(choices: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield combinations: all least, all most, one apart from these at a time, then the others in order."""
    least, most = tuple(each[0] for each in choices), tuple(each[-1] for each in choices)
    seen = set()
    apart = (
        (*base[:place], value, *base[place + 1 :])
        for base in (least, most)
        for place, values in enumerate(choices)
        for value in values
    )
    for combination in itertools.chain([least, most], apart, itertools.product(*choices)):
        if combination not in seen:
            seen.add(combination)
            yield combination


def _read(path: Path) -> Folder:
    made = Folder()
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            made.names[entry.name] = _read(entry)
        elif entry.is_file():
            data = entry.read_bytes()
            made.names[entry.name] = File(data, data)
    return made


def _folders(top: Folder) -> Iterator[Folder]:
    """Yield a folder and those that were ever below it, each once."""
    seen: set[int] = set()
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        if id(folder) in seen:
            continue
        seen.add(id(folder))
        yield folder
        waiting += [each for names in folder.states for each in names.values() if isinstance(each, Folder)]


def _files(top: Folder) -> Iterator[File]:
    seen: set[int] = set()
    for folder in _folders(top):
        for each in (each for names in folder.states for each in names.values()):
            if isinstance(each, File) and id(each) not in seen:
                seen.add(id(each))
                yield each


def _chosen(folder: Folder, states: dict[int, int], contents: dict[int, int]) -> Folder:
    made = Folder()
    for name, each in folder.states[states.get(id(folder), -1)].items():
        if isinstance(each, Folder):
            made.names[name] = _chosen(each, states, contents)
        else:
            part = contents.get(id(each))
            whole = {None: each.data, 0: each.synced, 1: each.data[: len(each.data) // 2], 2: each.data}[part]
            made.names[name] = File(whole, whole)
    return made


def write(folder: Folder, path: Path) -> None:
    """Make a folder of files like `folder`."""
    path.mkdir()
    for name, each in folder.names.items():
        if isinstance(each, Folder):
            write(each, path / name)
        else:
            (path / name).write_bytes(each.data)


def cut(update: Update, folder: Path) -> tuple[int, int]:
    """Cut the power after each operation; return how many operations there were, and how many disks were looked at.

    Before and after what an updating run begins with (`golden.recover`), each golden is the old one or the new one; and
    when the command has ended, it is the new one on every disk.
    """
    operations = [
        operation
        for operation in recorded(update, folder)
        if operation.path.is_relative_to(folder / "goldens")
    ]
    demand(len(operations) > len(update.new), f"only {len(operations)} operations were recorded")
    disk = Disk(update.before.goldens)
    made = 0
    for number, operation in enumerate([None, *operations]):
        if operation is not None:
            disk.do(moved(operation, folder / "goldens", update.before.goldens))
        for after in disk.after_a_cut():
            made += 1
            when = f"power cut after operation {number}: {operation}"
            _look_at(update, after, folder, when, ended=number == len(operations))
    return len(operations), made


def moved(operation: Operation, here: Path, there: Path) -> Operation:
    """Return an operation as it would be in another place."""
    to = there / operation.to.relative_to(here) if operation.to is not None else None
    return Operation(operation.kind, there / operation.path.relative_to(here), operation.data, to)


def _look_at(update: Update, disk: Folder, folder: Path, when: str, ended: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write(disk, folder / "goldens")
    place = Place(folder, old=update.before.old)
    update.demand_whole(place, when)
    try:
        golden.recover(place.goldens / place.release)
    except OSError as error:
        raise LostError(f"{update.name}, {when}: cannot be recovered: {error}") from error
    update.demand_whole(place, f"{when}, recovered")
    if ended:
        demand(place.goldens_by_digest() == update.new, f"{update.name}: accepted and lost, {when}")
