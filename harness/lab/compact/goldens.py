"""Reads and writes the compact goldens of a release's folder, and what they count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import accuracy, golden, merging
from executorch_goldens.goldens import reading as whole
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.golden import GoldenError, Texts
from executorch_goldens.goldens.reading import Reading
from lab.compact import form, table
from lab.compact.form import COUNTED
from lab.compact.table import TableError

_PTE = re.compile(r"pte: (\d+) bytes")


def read(folder: Path, cell: Cell) -> dict[str, str] | None:
    """Return the golden of a cell; None where there is none; raise `GoldenError`."""
    texts = _table(folder, cell.target).get(cell.case)
    if texts is None:
        return None
    if golden.MANIFEST not in texts or form.sealed(form.unsealed(texts)) != texts:
        what = f"{cell.case} is damaged or was edited by hand: its content does not match its digest"
        raise GoldenError(
            table.file_of(folder, cell.target), what, "Bring it back with git, or record it again."
        )
    if golden.FAILURE not in texts and COUNTED not in texts:
        what = f"{cell.case} has neither {COUNTED} nor {golden.FAILURE}"
        raise GoldenError(
            table.file_of(folder, cell.target), what, "Bring it back with git, or record it again."
        )
    return dict(texts)


def recorded(folder: Path) -> Iterator[Cell]:
    """Yield the cells that have a golden, by target; raise `GoldenError`."""
    for target, _ in table.tables(folder):
        yield from (Cell(target, case) for case in _table(folder, target))


def write(folder: Path, changed: Mapping[Cell, Texts | None]) -> None:
    """Replace the goldens of some cells, and delete those that are None; raise `GoldenError`."""
    for target in dict.fromkeys(cell.target for cell in changed):
        cells: dict[str, Texts] = dict(_table(folder, target))
        for cell, texts in changed.items():
            if cell.target == target:
                cells.pop(cell.case, None)
                if texts is not None:
                    cells[cell.case] = texts
        file = table.file_of(folder, target)
        try:
            table.write(file, cells)
        except OSError as error:
            what = f"cannot be written ({error})"
            raise golden.UnwritableError(file, what, "Make room for it, then record it again.") from error


def readings(folder: Path, release: str) -> dict[Cell, Reading]:
    """Return what each golden counts, and of cells that are known to be wrong the defect; raise `GoldenError`."""
    found = {cell: reading(read(folder, cell) or {}) for cell in recorded(folder)}
    for name, defect in Decisions.of_root(folder.parent, release).defects.items():
        found[Cell(*name.split("/"))] = Reading(f"{defect.verdict}: {defect.cause}")
    return dict(sorted(found.items()))


def reading(texts: Texts) -> Reading:
    """Return the facts of one golden."""
    if golden.FAILURE in texts:
        return whole.reading(texts)
    size = _PTE.search(texts[golden.MANIFEST])
    kinds = ("delegate", "operator", "outside", "memory", "constants", "duplicated")
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for line in texts[COUNTED].splitlines():
        counted, _, number = line.rpartition(": ")
        what, _, name = counted.partition(" ")
        counts[what][name] = int(number)
    return Reading(
        None,
        delegates=counts["delegate"],
        operators=counts["operator"],
        outside=counts["outside"],
        size=int(size[1]) if size else 0,
        constant_bytes=counts["constants"].total(),
        duplicated=counts["duplicated"].get("bytes"),
        accuracies={
            name: value for name, value in golden.fields(texts).items() if name.startswith(accuracy.FIELD)
        },
        memory=tuple(counts["memory"].values()),
    )


def _table(folder: Path, target: str) -> table.Table:
    file = table.file_of(folder, target)
    try:
        return table.read(file)
    except (OSError, TableError) as error:
        if conflict := merging.conflict_in(file):
            raise GoldenError(file, conflict, f"T{merging.take_a_side(file)[1:]}.") from error
        way_out = (
            f"Bring it back with 'git checkout COMMIT -- {file}', or delete it and record its cells again."
        )
        raise GoldenError(file, f"cannot be read ({error})", way_out) from error
