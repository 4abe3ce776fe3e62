"""The cells whose export runs what a mutant edits, from a release's map of reach."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.artifact import Cell
from executorch_goldens.reach.map import ReachMap
from lab.mutants.mechanical.sites import Site

#: The package that names of files are relative to, below site-packages.
PACKAGE = "executorch"


class Reach:
    """The statements that exports of cells run.

    Parameters
    ----------
    cells
        Those that count, in order; one that the map lacks reaches nothing.
    """

    def __init__(self, known: ReachMap, cells: Sequence[Cell]) -> None:
        self.known = known
        numbers = {each.cell: number for number, each in enumerate(known.cells)}
        self.numbers = {cell: numbers[cell] for cell in cells if cell in numbers}
        self.functions = {(known.files[each.file], each.first): each for each in known.functions}

    @property
    def cells(self) -> list[Cell]:
        """The cells that count and are in the map."""
        return list(self.numbers)

    def of(self, site: Site) -> list[Cell]:
        """Return the cells whose export runs a statement of a site, in the order given."""
        function = self.functions.get((f"{PACKAGE}/{site.file}", site.line))
        if function is None:
            return []
        found = self.known.cells_at(function, range(site.first, site.last + 1))
        return [cell for cell, number in self.numbers.items() if number in found]
