"""Compares the bytes of a ``.pte`` with the golden of a cell: bytes, layout, decoded content."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.decode import Decoded, Schemas
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.payloads import Differences
from executorch_goldens.errors import CommandError
from executorch_goldens.files.wording import some
from executorch_goldens.goldens import equality, golden, program, rendering
from executorch_goldens.goldens.outline import OutlineError
from executorch_goldens.goldens.record import DELEGATE, DIGITS, PROGRAM, Record


@dataclass(frozen=True)
class Found:
    """The golden that a program is compared with.

    Attributes
    ----------
    release
        The ExecuTorch version that it was recorded on.
    """

    cell: Cell
    release: str
    record: Record

    @property
    def name(self) -> str:
        return f"the golden of {self.cell} on ExecuTorch {self.release}"

    def has_bytes(self, pte: bytes) -> bool:
        """Return whether the recorded program has the bytes `pte`, on whatever architecture."""
        # The program's digest is the last of the manifest's, after those of its delegates.
        known = {of_architecture[-1] for of_architecture in equality.digests(self.record).values()}
        return hashlib.sha256(pte).hexdigest()[:DIGITS] in known

    def has_layout(self, pte: bytes, decoded: Decoded, schemas: Schemas) -> bool:
        """Return whether the recorded program differs from `pte` only where a serializer leaves the layout open."""
        recorded = self.record.facts.get(golden.LAYOUT)
        payloads = [delegate.payload for delegate in decoded.delegates]
        return (
            recorded is not None and recorded == f"sha256 {rendering.layout(pte, payloads, schemas)[:DIGITS]}"
        )

    def differences(self, decoded: Decoded) -> Iterator[tuple[str, Differences | None]]:
        """Yield each section of the golden that the program differs in; None for one that only one of them has.

        Raises
        ------
        CommandError
            For texts that no version of this harness wrote.
        """
        made = {PROGRAM: program.section(decoded.text())}
        for index, delegate in enumerate(decoded.delegates):
            if delegate.decoded is not None:
                made[f"{DELEGATE}{index}.{delegate.decoded.kind}"] = delegate.decoded.text()
        recorded = {name for name in self.record.sections if name == PROGRAM or name.startswith(DELEGATE)}
        try:
            changes = Difference(self.record, Record({}, made)).changes
        except OutlineError as error:
            raise CommandError(f"{self.name} is no golden of this version: {error}") from error
        for name in sorted({*made, *recorded}):
            if name not in changes or not changes[name].same:
                yield name, changes.get(name)


def find(cell: Cell, root: Path, release: str | None) -> Found:
    """Return the golden of `cell` under `root`.

    Parameters
    ----------
    release
        An ExecuTorch version; None for the only one that has a golden of the cell.

    Raises
    ------
    CommandError
        Where there is no such golden, where several releases have one and none is named, and where it is of a failure.
    executorch_goldens.goldens.golden.GoldenError
        For a golden that cannot be read.
    """
    folders = sorted(path for path in root.glob("[0-9]*") if path.is_dir())
    there = [folder.name for folder in folders if _has(folder, cell)]
    if release is None and len(there) > 1:
        raise CommandError(f"{cell} has goldens on {', '.join(there)}: name one with --release")
    if not there:
        raise CommandError(f"{cell} has no golden under {root}{_hint(cell, folders)}")
    version = release or there[0]
    if version not in there:
        raise CommandError(f"{cell} has no golden on {version}, but on {', '.join(there)} ({root})")
    record = golden.read(golden.file_of(root / version, cell))
    assert record is not None
    found = Found(cell, version, record)
    if record.fails:
        raise CommandError(f"{found.name} is a failure to lower: it has no program to compare with")
    return found


def _has(folder: Path, cell: Cell) -> bool:
    return cell in set(golden.recorded(folder))


def _hint(cell: Cell, folders: list[Path]) -> str:
    """Return the end of a message about a cell that no release has: the cells that are called nearly so."""
    known = sorted({str(each) for folder in folders for each in golden.recorded(folder)})
    near = difflib.get_close_matches(str(cell), known, n=3)
    if near:
        return f": did you mean {' or '.join(near)}?"
    return f", which has {some(known)}" if known else ""
