"""Each drawn mutant on the cheapest cells that run its lines, until one differs from its golden.

What was found is kept a line a mutant, and a session that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable
from executorch_goldens.goldens import golden
from executorch_goldens.running.plan import Plan
from executorch_goldens.sweep.sweep import Sweep
from lab.mutants import lines
from lab.mutants.mechanical import DRAWN
from lab.mutants.mechanical.drawing import Mechanical, text
from lab.mutants.mechanical.reach import Reach
from lab.mutants.mutant import Mutated
from lab.mutants.table import NONE, judge, named

#: Cells that a mutant is tried on, at most, over the core and again outside it.
TRIED = 6
#: Seconds of an export with a mutant, at most: some never end.
LIMIT = 60.0
#: Verdict of a mutant whose lines no cell runs.
NOT_REACHED = "not reached"


@dataclass(frozen=True)
class Found:
    """Results of some cells for a mutant.

    Attributes
    ----------
    mutant
        Its name.
    reach
        Number of cells whose export runs its lines.
    tried
        Number of these that it was tried on.
    cell
        The last one, which differs from its golden; empty where none does.
    verdict, named
        The result for that cell, as in `lab.mutants.table.Judged`; `NOT_REACHED` where `reach` is 0.
    """

    mutant: str
    reach: int
    tried: int
    cell: str
    verdict: str
    named: str

    @property
    def killed(self) -> bool:
        return bool(self.cell)


class Kept:
    """The results of earlier sessions with the same mutants, cells and goldens' release."""

    def __init__(self, file: Path, cells: Sequence[Cell]) -> None:
        self.file = file
        self.cells = hashlib.sha256(repr(sorted(map(str, cells))).encode()).hexdigest()

    def key(self, mutant: Mechanical) -> str:
        return hashlib.sha256(f"{self.cells}{mutant.site!r}".encode()).hexdigest()[:12]

    def read(self, drawn: Sequence[Mechanical]) -> dict[str, Found]:
        """Return the results of `drawn`, by name."""
        keys = {(mutant.name, self.key(mutant)) for mutant in drawn}
        return lines.read(self.file, keys, Found)

    def add(self, mutant: Mechanical, found: Found) -> None:
        lines.add(self.file, found, self.key(mutant))


class Search:
    """Tries mutants on cells.

    Parameters
    ----------
    planned
        With ``lab.mutants.mechanical.installed`` among its zoos, and one variation.
    file
        Where exporting processes read the drawn mutants from; written here.
    """

    def __init__(self, planned: Plan, drawn: Sequence[Mechanical], file: Path) -> None:
        self.planned = planned
        self.drawn = drawn
        self.installed: dict[Cell, Sequence[str]] = {}
        #: Whether a cell equals its golden without a mutant; otherwise it does not count.
        self.usable: dict[Cell, bool] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(file, text(drawn))
        os.environ[DRAWN] = str(file.absolute())

    def over(self, reach: Reach, kept: Kept) -> Iterator[Found]:
        """Yield the results of the cells of `reach`, the cheapest first, for each mutant."""
        known = kept.read(self.drawn)
        targets = sorted({cell.target for cell in reach.cells})
        settings = replace(self.planned.settings, limit=LIMIT)
        with Sweep(
            (),
            self.planned.variations,
            settings,
            lasting=True,
            further_patches=self.installed,
            targets=targets,
        ) as sweep:
            for mutant in self.drawn:
                found = known.get(mutant.name)
                if found is None:
                    found = self.tried(sweep, mutant, reach.of(mutant.site))
                    kept.add(mutant, found)
                yield found

    def tried(self, sweep: Sweep, mutant: Mechanical, cells: Sequence[Cell]) -> Found:
        """Try a mutant on up to `TRIED` of `cells`."""
        if not cells:
            return Found(mutant.name, 0, 0, "", NOT_REACHED, NONE)
        tried = 0
        for cell in cells:
            if tried == TRIED:
                break
            mutated = Mutated(cell.target, cell.case, mutant.name)
            self.installed[mutated] = (mutant.name,)
            verdict = judge(self.planned, cell, sweep.again(mutated, self.planned.variations))
            if verdict.name != "stable" and not self._is_usable(sweep, cell):
                continue
            tried += 1
            if verdict.name != "stable":
                return Found(mutant.name, len(cells), tried, str(cell), verdict.name, named(verdict))
        return Found(mutant.name, len(cells), tried, "", "stable", NONE)

    def _is_usable(self, sweep: Sweep, cell: Cell) -> bool:
        if cell not in self.usable:
            without = judge(self.planned, cell, sweep.again(cell, self.planned.variations))
            self.usable[cell] = without.name == "stable"
        return self.usable[cell]


def with_golden(planned: Plan, cells: Sequence[Cell]) -> list[Cell]:
    """Return those of `cells` that must be as their golden."""
    return [cell for cell in cells if golden.directory(planned.root, cell).is_dir()]
