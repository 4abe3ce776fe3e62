"""What a core must keep, and which cells have it: statements, mutants, fixes, issues and targets.

Statements that a cell runs are in the release's map of reach. Which cells kill a mutant or see a fix taken back was
tried, and is kept: `lab.mutants.mechanical` and ``lab/mutants/history/seen.tsv``.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.running import core
from executorch_goldens.running.selection import load_cells
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import config, releases
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.map import MappedFunction, ReachMap
from lab.mutants.history import FIXES
from lab.mutants.history import page as history
from lab.mutants.mechanical import page as mechanical
from lab.reach.owners import bits, owned
from lab.stock.issues import issue_cells

#: Cells as bits, by their numbers in the map.
Cells = int
#: Processor seconds of a cell that is asked for no mutant or fix alone: comparisons find it where an edit reaches it.
DEAR = 10.0


@dataclass(frozen=True)
class Source:
    """What there is to draw the core of a release from.

    Attributes
    ----------
    folder
        Of the release's goldens.
    known
        The map of reach.
    candidates
        Cells of the zoo that have a golden, or are known to be wrong.
    committed
        The core as it is.
    gone
        Cells of it that are no candidates.
    mutants, fixes
        Which cells kill a mutant or see a fix taken back, of all sources.
    always
        Cells that show an issue, with its number.
    """

    folder: Path
    known: ReachMap
    candidates: Cells
    committed: Cells
    gone: tuple[Cell, ...]
    mutants: Mapping[str, Cells]
    fixes: Mapping[str, Cells]
    always: Mapping[int, str]

    @classmethod
    def from_root(cls, goldens: Path, release: str) -> Source:
        """Read it; raise MapError without a usable map, and as `core.read`."""
        folder = goldens / release
        reached = maps.read(folder / maps.FILE)
        numbers = {each.cell: number for number, each in enumerate(reached.cells)}
        repository = config.load()
        models = repository.zoos(None)
        of_zoo = load_cells(models, releases.load().release(release), repository.targets)
        declared = Decisions.of_root(goldens, release).defects
        recorded = {*golden.recorded(folder), *(cell for cell in of_zoo if str(cell) in declared)}
        committed = core.read(folder / core.FILE)
        issues = issue_cells(load_zoo(models).values())
        return cls(
            folder,
            reached,
            bits(numbers[cell] for cell in of_zoo if cell in recorded and cell in numbers),
            bits(numbers[cell] for cell in committed if cell in numbers),
            tuple(cell for cell in committed if cell not in recorded),
            dict(killed(release, numbers)),
            dict(seen(release, numbers)),
            {
                numbers[cell]: f"issue #{number}"
                for number, cells in issues.items()
                for cell in cells
                if cell in numbers and cell in recorded
            },
        )

    @functools.cached_property
    def functions(self) -> list[MappedFunction]:
        """The functions whose statements count."""
        return [each for functions in owned(self.known).values() for each in functions]

    @functools.cached_property
    def statements(self) -> list[Cells]:
        """The cells of each statement that some cell runs."""
        found = []
        for function in self.functions:
            running: dict[int, Cells] = {}
            for each in function.situations:
                for line in each.lines:
                    running[line] = running.get(line, 0) | int.from_bytes(each.cells, "little")
            found += [running[line] for line in function.statements if line in running]
        return found

    @functools.cached_property
    def targets(self) -> dict[str, Cells]:
        """The candidates of each target."""
        found: dict[str, Cells] = {}
        for number in numbers_of(self.candidates):
            target = self.known.cells[number].target
            found[target] = found.get(target, 0) | 1 << number
        return found

    @property
    def finds(self) -> Mapping[str, Cells]:
        """The mutants and fixes, with the cells that find them."""
        return {**self.mutants, **self.fixes}

    def must(self) -> Iterator[tuple[str, Cells]]:
        """Yield what the core must have beside statements, with the candidates that have it."""
        dear = bits(n for n, each in enumerate(self.known.cells) if each.seconds > DEAR)
        for name, cells in self.shows():
            if cells & ~dear or name not in self.finds:
                yield name, cells

    def shows(self) -> Iterator[tuple[str, Cells]]:
        """Yield each mutant, fix and target with the candidates that show it."""
        for named in (self.mutants, self.fixes, {f"target {name}": of for name, of in self.targets.items()}):
            for name, cells in sorted(named.items()):
                if cells & self.candidates:
                    yield name, cells & self.candidates

    def unkept(self) -> list[str]:
        """Return the mutants and fixes that only cells see which are no candidates, or dear ones."""
        must = dict(self.must())
        return [
            f"{name}: {self.cell(next(numbers_of(cells)))}"
            for name, cells in sorted(self.finds.items())
            if cells and name not in must
        ]

    def cell(self, number: int) -> Cell:
        return self.known.cells[number].cell

    def seconds(self, cells: Cells) -> float:
        """Return the processor seconds of one export of some cells."""
        return sum(self.known.cells[number].seconds for number in numbers_of(cells))

    def reached(self, cells: Cells) -> int:
        """Return how many statements some cells run."""
        return sum(1 for of_statement in self.statements if of_statement & cells)

    def situations(self) -> dict[Hashable, Cells]:
        """Return the candidates that reach a function in each of its situations."""
        found: dict[Hashable, Cells] = {}
        for at, function in enumerate(self.functions):
            for number in numbers_of(self.known_in(function) & self.candidates):
                situation = (at, self.known.situation(number, function))
                found[situation] = found.get(situation, 0) | 1 << number
        return found

    def known_in(self, function: MappedFunction) -> Cells:
        return bits(self.known.cells_in(function))


def numbers_of(cells: Cells) -> Iterator[int]:
    """Yield the numbers of some cells.

    >>> list(numbers_of(0b1101))
    [0, 2, 3]
    """
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def killed(release: str, numbers: Mapping[Cell, int]) -> Iterator[tuple[str, Cells]]:
    """Yield each mutant that some cell kills, with these cells."""
    for row in mechanical.committed(release):
        if row.killers:
            yield f"mutant {row.mutant}", _of(row.killers, numbers)


def seen(release: str, numbers: Mapping[Cell, int]) -> Iterator[tuple[str, Cells]]:
    """Yield each fix that some cell sees taken back, with these cells."""
    found = history.seen(release)
    for fix in (fix for fix in FIXES if fix.release == release):
        if cells := _of(found.get(fix.key, ()), numbers):
            yield f"fix #{fix.number} {fix.key.partition('@')[2]}", cells


def _of(cells: Collection[str], numbers: Mapping[Cell, int]) -> Cells:
    return bits({numbers[cell] for cell in map(Cell.named, cells) if cell in numbers})
