"""Reads and writes the compact goldens of a release's folder, and what they count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden, merging
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.record import FAILURE, Record
from lab.compact import form, known, table
from lab.compact.form import COUNTED
from lab.compact.table import TableError


def read(folder: Path, cell: Cell) -> Record | None:
    """Return the golden of a cell; None where there is none; raise `GoldenError`."""
    texts = _table(folder, cell.target).get(cell.case)
    if texts is None:
        return None
    record = form.unsealed(texts)
    if form.texts_of(record) != texts:
        what = f"{cell.case} is damaged or was edited by hand: its content does not match its digest"
    elif not record.fails and COUNTED not in record.sections:
        what = f"{cell.case} has neither {COUNTED} nor {FAILURE}"
    else:
        return record
    raise GoldenError(table.file_of(folder, cell.target), what, "Bring it back with git, or record it again.")


def recorded(folder: Path) -> Iterator[Cell]:
    """Yield the cells that have a golden, by target; raise `GoldenError`."""
    for target, _ in table.tables(folder):
        yield from (Cell(target, case) for case in _table(folder, target))


def write(folder: Path, changed: Mapping[Cell, Record | None]) -> None:
    """Replace the goldens of some cells, and delete those that are None; raise `GoldenError`."""
    for target in dict.fromkeys(cell.target for cell in changed):
        cells = dict(_table(folder, target))
        for cell, record in changed.items():
            if cell.target == target:
                cells.pop(cell.case, None)
                if record is not None:
                    cells[cell.case] = form.texts_of(record)
        file = table.file_of(folder, target)
        try:
            table.write(file, cells)
        except OSError as error:
            what = f"cannot be written ({error})"
            raise golden.UnwritableError(file, what, "Make room for it, then record it again.") from error


def readings(folder: Path, release: str) -> dict[Cell, Inventory]:
    """Return what each golden counts, and of cells that are known to be wrong the defect; raise `GoldenError`."""
    records = {cell: read(folder, cell) for cell in recorded(folder)}
    found = {cell: record.inventory for cell, record in records.items() if record is not None}
    for name, defect in Decisions.of_root(folder.parent, release).defects.items():
        found[Cell(*name.split("/"))] = Inventory(f"{defect.verdict}: {known.cause(defect)}")
    return dict(sorted(found.items()))


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
