"""Converts goldens of the older form, a folder each, to a file each: a root whole, or not at all.

An older golden had ``manifest.txt``, with a digest of all files in its last line, and a file for each section. Facts
that nothing reads any more are left out: the digest of the trace, which is in the file, and how it was sped up.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.files import durable, untrusted
from executorch_goldens.goldens import golden, program, record, roots
from executorch_goldens.goldens.golden import GoldenError, UnwritableError
from executorch_goldens.goldens.record import CONTENTS, DIGITS, FORMAT, PROGRAM, Record

#: Facts of older goldens that newer ones do not have.
RETIRED = ("format", "trace", "kernels", "shortcuts")
_DIGEST = re.compile(r"\b(sha256 [0-9a-f]{16})[0-9a-f]{48}\b")


@dataclass(frozen=True)
class Converted:
    """What was converted in a release's folder.

    Attributes
    ----------
    dropped
        Number of goldens with each fact that is left out.
    departing
        How many goldens say more than the file of their release and what is their own.
    """

    folder: Path
    goldens: int
    files: int
    dropped: Mapping[str, int]
    departing: int

    def __str__(self) -> str:
        dropped = ", ".join(f"{name} of {count}" for name, count in self.dropped.items() if count)
        return (
            f"{self.folder}: {self.goldens} goldens in {self.files} files are {self.goldens} files now, "
            f"each read again and equal; {self.departing} depart from {golden.RELEASE}; dropped: {dropped or 'nothing'}"
        )


@dataclass(frozen=True)
class _Old:
    path: Path
    record: Record
    files: int
    retired: tuple[str, ...]


def convert(root: Path) -> list[Converted]:
    """Convert the goldens under a root; nothing is changed where one of them cannot be.

    Raises
    ------
    GoldenError
        For a golden that is damaged, or that is there in both forms.
    """
    folders = sorted({path.parents[2] for path in root.glob(f"*/*/*/{golden.OLD}")})
    with contextlib.ExitStack() as held:
        for folder in folders:
            lock = roots.lock(root, folder.name)
            roots.open_for_writing(folder, lock)
            held.callback(lock.release)
        return _convert(root, folders)


def _convert(root: Path, folders: Sequence[Path]) -> list[Converted]:
    written: dict[Path, str] = {}
    found: list[Converted] = []
    read: list[_Old] = []
    for folder in folders:
        olds = [_read(path.parent) for path in sorted(folder.glob(f"*/*/{golden.OLD}"))]
        shared = golden.shared(folder) or _shared([old.record for old in olds])
        texts = {_file(old.path): old.record.text(shared) for old in olds}
        written |= {folder / golden.RELEASE: roots.shared_text(shared), **texts}
        found.append(_told(folder, olds, texts, shared))
        read += olds
    _write(written)
    for old in read:
        shutil.rmtree(old.path)
    if (zoo := root / roots.ZOO).is_file():
        lines = [
            line for line in zoo.read_text(encoding="utf-8").splitlines() if not line.startswith("format:")
        ]
        durable.replace(zoo, "\n".join([f"format: {FORMAT}", *lines]) + "\n")
    return found


def _read(path: Path) -> _Old:
    """Return the golden in a folder; raise GoldenError."""
    try:
        texts = {file.name: untrusted.text(file) for file in sorted(path.iterdir())}
    except (OSError, ValueError) as error:
        raise _refused(path, f"cannot be read ({error})") from error
    *lines, last = texts[golden.OLD].splitlines(keepends=True) or [""]
    digest = last.strip().removeprefix(f"{CONTENTS}: sha256 ")
    made = hashlib.sha256()
    for name, text in sorted({**texts, golden.OLD: "".join(lines)}.items()):
        data = text.encode()
        made.update(f"{name} {len(data)}\n".encode() + data)
    if made.hexdigest() != digest:
        raise _refused(
            path, "is damaged, was edited by hand or left by a merge: its content does not match its digest"
        )
    facts = [line.rstrip("\n").partition(": ")[::2] for line in lines]
    kept = ((name, _short(name, value)) for name, value in facts if name not in RETIRED)
    sections = {
        name.removesuffix(golden.SUFFIX): _DIGEST.sub(r"\1", text)
        for name, text in texts.items()
        if name != golden.OLD
    }
    if PROGRAM in sections:
        sections[PROGRAM] = program.section(sections[PROGRAM])
    retired = tuple(name for name, _ in facts if name in RETIRED)
    return _Old(path, Record.in_order(kept, sections), len(texts), retired)


def _short(name: str, value: str) -> str:
    if name.startswith(f"{golden.DIGESTS} "):
        return " ".join(word[:DIGITS] for word in value.split())
    return _DIGEST.sub(r"\1", value)


def _shared(records: Sequence[Record]) -> dict[str, str]:
    """Return the facts that all goldens of a release state, each with its most common value."""
    first, *_ = records
    names = [name for name in first.facts if record.may_be_shared(name)]
    counted = {name: Counter(each.facts.get(name) for each in records) for name in names}
    return {
        name: value
        for name in names
        if None not in counted[name] and (value := counted[name].most_common(1)[0][0])
    }


def _told(
    folder: Path, olds: Sequence[_Old], texts: Mapping[Path, str], shared: Mapping[str, str]
) -> Converted:
    """Return what is converted; raise GoldenError unless each file is read as the golden that it was."""
    for old in olds:
        file = _file(old.path)
        read = Record.parse(texts[file], shared)
        if (
            read != old.record
            or [*read.sections] != [*old.record.sections]
            or read.text(shared) != texts[file]
        ):
            raise _refused(old.path, "is not the same as one file")
        if file.exists() and golden.read(file) != old.record:
            raise _refused(old.path, f"is there as {file.name} as well, and is another golden")
    departing = sum(
        any(old.record.facts.get(name) != value for name, value in shared.items()) for old in olds
    )
    dropped = Counter(name for old in olds for name in old.retired)
    files = sum(old.files for old in olds)
    return Converted(folder, len(olds), files, {name: dropped[name] for name in RETIRED[2:]}, departing)


def _write(texts: Mapping[Path, str]) -> None:
    """Write files, all or none; raise UnwritableError."""
    new = [path for path in texts if not path.exists()]
    try:
        for path in new:
            durable.replace(path, texts[path], synced=False)
        # Before the older ones are deleted, and once for all.
        os.sync()
    except OSError as error:
        for each in new:
            each.unlink(missing_ok=True)
        what = f"cannot be written ({error})"
        raise UnwritableError(
            path, what, "Make room for it, then convert again; nothing was changed."
        ) from error


def _file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{golden.SUFFIX}")


def _refused(path: Path, what: str) -> GoldenError:
    way_out = "Bring it back with git, or delete the one that is not wanted; nothing was converted."
    return GoldenError(path, what, way_out)
