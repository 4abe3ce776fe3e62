"""Each drawn mutant on unlike cells that run its lines, of all sources, until one differs from its unedited export.

What was found is kept a line a mutant, and a session that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.decode import DecodeError
from executorch_goldens.files import durable
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.comparison import compare, undecodable
from executorch_goldens.judging.verdict import DISAGREEING, Verdict
from executorch_goldens.settings.exports import Settings
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.targets import find
from executorch_goldens.zoo.variations import variations
from lab.mutants.mechanical import DRAWN
from lab.mutants.mechanical.drawing import Mechanical, text
from lab.mutants.mechanical.reach import Reach
from lab.mutants.mutant import Mutated

#: Marks that no cell kills a mutant, or that no pass is named.
NONE = "-"
#: Cells of each tier that leave a mutant alive before the next tier is tried.
TRIED = 4
#: Seconds of an export with a mutant, at most: some never end.
LIMIT = 60.0
#: Exports are made under this variation.
VARIATIONS = variations((1,))


@dataclass(frozen=True)
class Found:
    """Results of some cells for a mutant.

    Attributes
    ----------
    mutant
        Its name.
    alive
        Cells that are as they are without it.
    killed_by
        Cells that are not.
    verdict, named
        The verdict of the first of these, and the pass or stage that it names.
    """

    mutant: str
    alive: Sequence[str] = ()
    killed_by: Sequence[str] = ()
    verdict: str = NONE
    named: str = NONE


class Kept:
    """The results of earlier sessions with the same mutants on the same release."""

    def __init__(self, file: Path, release: str) -> None:
        self.file = file
        self.release = release

    def key(self, mutant: Mechanical) -> str:
        return hashlib.sha256(f"{self.release}{mutant.site!r}".encode()).hexdigest()[:12]

    def read(self, drawn: Sequence[Mechanical]) -> dict[str, Found]:
        """Return the last results of `drawn`, by name."""
        keys = {(mutant.name, self.key(mutant)) for mutant in drawn}
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        return {
            line["mutant"]: Found(**{name: value for name, value in line.items() if name != "key"})
            for line in map(json.loads, lines)
            if (line["mutant"], line["key"]) in keys
        }

    def add(self, mutant: Mechanical, found: Found) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({**asdict(found), "key": self.key(mutant)}) + "\n")


class Search:
    """Tries mutants on cells.

    Parameters
    ----------
    settings
        With ``lab.mutants.mechanical.installed`` among its zoos.
    file
        Where exporting processes read the drawn mutants from; written here.
    """

    def __init__(self, release: Release, settings: Settings, drawn: Sequence[Mechanical], file: Path) -> None:
        self.release = release
        self.settings = replace(settings, limit=LIMIT)
        self.drawn = drawn
        self.installed: dict[Cell, Sequence[str]] = {}
        #: What each cell is without a mutant; None for one that is not right.
        self.unedited: dict[Cell, Record | None] = {}
        self.lock = threading.Lock()
        #: Cells that were the same twice.
        self.steady: set[Cell] = set()
        #: Two threads must not export a cell at the same time.
        self.exporting: dict[Cell, threading.Lock] = defaultdict(threading.Lock)
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(file, text(release.version, drawn))
        os.environ[DRAWN] = str(file.absolute())

    def over(
        self,
        reach: Reach,
        tiers: Sequence[Sequence[Cell]],
        known: Mapping[str, Found],
        kept: Kept,
        until: float = math.inf,
    ) -> Iterator[Found]:
        """Yield the results for each mutant.

        Parameters
        ----------
        tiers
            The core, then others: a mutant is tried on `TRIED` of each until one kills it. One that is known to be
            killed is tried on those of the core alone.
        known
            Results so far, by name.
        until
            No mutant is begun after, by `time.monotonic`.
        """
        # Of targets that load the same, one is exported before others.
        targets = {
            (find(name).backend, find(name).is_quantized): name
            for name in sorted({each.target for tier in tiers for each in tier})
        }
        sweep = Sweep(
            (),
            VARIATIONS,
            self.settings,
            lasting=True,
            further_patches=self.installed,
            targets=sorted(targets.values()),
        )

        def tried(mutant: Mechanical) -> Found:
            before = known.get(mutant.name, Found(mutant.name))
            if time.monotonic() > until:
                return before
            found = self.tried(sweep, before, reach.cells(mutant.site), tiers)
            if found != before:
                with self.lock:
                    kept.add(mutant, found)
            return found

        with sweep, ThreadPoolExecutor(self.settings.jobs) as threads:
            yield from threads.map(tried, self.drawn)

    def tried(
        self, sweep: Sweep, found: Found, cells: Sequence[Cell], tiers: Sequence[Sequence[Cell]]
    ) -> Found:
        """Try a mutant on unlike ones of `cells`, tier by tier."""
        first = {*map(str, tiers[0])}
        for number, tier in enumerate(tiers):
            if found.killed_by and (number or not first.isdisjoint(found.killed_by)):
                break
            within = set(tier)
            found = self._on(sweep, found, [cell for cell in cells if cell in within])
        return found

    def _on(self, sweep: Sweep, found: Found, cells: Sequence[Cell]) -> Found:
        alive = len({*found.alive} & {*map(str, cells)})
        for cell in cells:
            if alive >= TRIED:
                break
            if str(cell) in found.alive or self._without(sweep, cell) is None:
                continue
            judged = self._compared(sweep, cell, found.mutant)
            if judged.name != "stable":
                if not self._is_steady(sweep, cell):
                    continue
                first = not found.killed_by
                return replace(
                    found,
                    killed_by=(*found.killed_by, str(cell)),
                    verdict=judged.name if first else found.verdict,
                    named=named(judged) if first else found.named,
                )
            alive += 1
            found = replace(found, alive=(*found.alive, str(cell)))
        return found

    def _without(self, sweep: Sweep, cell: Cell) -> Record | None:
        """Return what a cell is without a mutant; None for one that is not right."""
        with self.exporting[cell]:
            if cell not in self.unedited:
                self.unedited[cell] = compare(cell, sweep.again(cell, VARIATIONS), None, self.release).record
            return self.unedited[cell]

    def _is_steady(self, sweep: Sweep, cell: Cell) -> bool:
        """Return whether a cell is without a mutant what it was before: else it tells nothing of one."""
        with self.exporting[cell]:
            known = self.unedited[cell]
            if known is not None and cell not in self.steady:
                again = compare(cell, sweep.again(cell, VARIATIONS), known, self.release).verdict
                if again.name == "stable":
                    self.steady.add(cell)
                else:
                    self.unedited[cell] = None
            return cell in self.steady

    def _compared(self, sweep: Sweep, cell: Cell, mutant: str) -> Verdict:
        mutated = Mutated(cell.target, cell.case, mutant)
        self.installed[mutated] = (mutant,)
        outcomes = sweep.again(mutated, VARIATIONS)
        try:
            return compare(cell, outcomes, self.unedited[cell], self.release).verdict
        except DecodeError as error:
            return undecodable(cell, error)


def named(verdict: Verdict) -> str:
    """Return the pass or stage that a verdict names."""
    if verdict.divergence is not None:
        return verdict.divergence.name
    return "no pass" if verdict.name in DISAGREEING else NONE
