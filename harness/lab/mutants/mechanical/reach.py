"""The cells whose export runs what a mutant edits, from a release's map of reach: unlike ones first."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable, Sequence

from executorch_goldens.artifact import Cell
from executorch_goldens.reach.map import MappedFunction, ReachMap
from lab.mutants.mechanical.sites import Site

#: The package that names of files are relative to, below site-packages.
PACKAGE = "executorch"


class Reach:
    """The statements that exports of cells run."""

    def __init__(self, known: ReachMap) -> None:
        self.known = known
        self.functions = {(known.files[each.file], each.first): each for each in known.functions}

    def cells(self, site: Site) -> list[Cell]:
        """Return the cells whose export runs a statement of a site.

        Those of each source and target take turns, and of these those of each situation; the cheapest come first.
        """
        function = self.functions.get((f"{PACKAGE}/{site.file}", site.line))
        if function is None:
            return []
        found = self.known.cells_at(function, range(site.first, site.last + 1))
        return [self.known.cells[number].cell for number in self._unlike(found, function)]

    def _unlike(self, cells: Collection[int], function: MappedFunction) -> list[int]:
        groups: dict[Hashable, dict[Hashable, list[int]]] = {}
        for number in sorted(cells, key=lambda each: (self.known.cells[each].seconds, each)):
            cell = self.known.cells[number]
            kinds = groups.setdefault((cell.source, cell.target), {})
            kinds.setdefault(self.known.situation(number, function), []).append(number)
        return turns([turns(kinds.values()) for kinds in groups.values()])


def turns(each: Iterable[Sequence[int]]) -> list[int]:
    """Return the first of each, then the second of each, and so on.

    >>> turns([[1, 2], [3], [4, 5]])
    [1, 3, 4, 2, 5]
    """
    return [cell for turn in itertools.zip_longest(*each) for cell in turn if cell is not None]
