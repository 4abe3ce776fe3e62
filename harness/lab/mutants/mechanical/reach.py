"""The cells whose export runs what a mutant edits, from a release's map of reach: unlike ones first."""

from __future__ import annotations

from executorch_goldens.artifact import Cell
from executorch_goldens.reach.choice import unlike
from executorch_goldens.reach.map import ReachMap
from lab.mutants.mechanical.sites import Site

#: The package that names of files are relative to, below site-packages.
PACKAGE = "executorch"


class Reach:
    """The statements that exports of cells run."""

    def __init__(self, known: ReachMap) -> None:
        self.known = known
        self.functions = {(known.files[each.file], each.first): each for each in known.functions}

    def cells(self, site: Site) -> list[Cell]:
        """Return the cells whose export runs a statement of a site, unlike ones first."""
        function = self.functions.get((f"{PACKAGE}/{site.file}", site.line))
        if function is None:
            return []
        found = self.known.cells_at(function, range(site.first, site.last + 1))
        return [self.known.cells[number].cell for number in unlike(found, function, self.known)]
