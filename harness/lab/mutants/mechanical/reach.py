"""The cells whose export runs what a mutant edits, in the order in which `goldens compare` takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens_plugins.compare.reach import code
from executorch_goldens_plugins.compare.reach.choice import choose
from executorch_goldens_plugins.compare.reach.edits import Edits, of_functions
from executorch_goldens_plugins.compare.reach.map import ReachMap
from lab.mutants.mechanical.sites import Site

#: The package that names of files are relative to, below site-packages.
PACKAGE = "executorch"


class Reach:
    """The statements that exports of cells run.

    Parameters
    ----------
    site_packages
        Of the release that the map is of.
    further
        Cells that the map does not have, by site.
    """

    def __init__(
        self, known: ReachMap, site_packages: Path, further: Mapping[Site, Sequence[Cell]] | None = None
    ) -> None:
        self.known = known
        self.site_packages = site_packages
        self.further = further or {}

    def cells(self, site: Site) -> list[Cell]:
        """Return the cells whose export runs a statement of a site."""
        file = f"{PACKAGE}/{site.file}"
        path = self.site_packages / file
        edited = code.module(site.applied(path.read_bytes()).decode())
        edits = Edits(tuple(of_functions(file, code.module_of(path), edited)), (file,), ())
        chosen = choose(edits, self.site_packages, self.known, math.inf, 1)
        return [
            *(self.known.cells[number].cell for number in chosen.cells),
            *self.further.get(site, ()),
        ]
