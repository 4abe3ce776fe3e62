"""Branches taken by single exports, one file each, so that a stopped measurement can continue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable

#: Jumps from line to line by file, as coverage.py has them; a number below 0 is the way into or out of a function.
Jumps = Mapping[str, Iterable[tuple[int, int]]]


class Records:
    """The records in a folder: ``<target>/<case>/<hash seed>.json``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, cell: Cell, hash_seed: str, jumps: Jumps) -> None:
        """Leave a whole record, or nothing."""
        file = self._of_cell(cell) / f"{hash_seed}.json"
        made = {name: sorted(of_file) for name, of_file in jumps.items()}
        durable.replace(file, json.dumps(made, separators=(",", ":")), synced=False)

    def cells(self) -> dict[Cell, list[Path]]:
        """Return the cells that have records, with the files of these."""
        found: dict[Cell, list[Path]] = {}
        for file in sorted(self.folder.glob("*/*/*.json")):
            found.setdefault(Cell(file.parent.parent.name, file.parent.name), []).append(file)
        return found

    def of(self, cells: Iterable[Cell]) -> dict[str, set[tuple[int, int]]]:
        """Return the branches that any export of some cells took; a cell without a record took none."""
        found: dict[str, set[tuple[int, int]]] = {}
        for file in (file for cell in cells for file in sorted(self._of_cell(cell).glob("*.json"))):
            for name, jumps in json.loads(file.read_text(encoding="utf-8")).items():
                found.setdefault(name, set()).update((start, end) for start, end in jumps)
        return found

    def _of_cell(self, cell: Cell) -> Path:
        return self.folder / cell.target / cell.case
