"""New models for an edit that no cell shows: cells near it with something changed (`exporting.changing`).

Which ones come first is drawn from a seed: the same command tries the same ones, as far as its time goes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from executorch_goldens.artifact import Cell
from executorch_goldens.comparing.sides import Side, Sides
from executorch_goldens.reach.map import ReachMap
from executorch_goldens.zoo.registry import CASES, Case

#: The zoo of changed cases, its variable, and the parts of their names.
ZOO = "executorch_goldens.exporting.changing"
#: Begins the line that keeps a changed case.
KEEP = f"from {ZOO} import keep; keep(__name__, "
#: Most cells that are changed, and most cases of a search.
NEAR, MOST = 24, 600
#: Most seconds of processor time that one export of a cell may take to be changed.
SLOWEST = 4.0


@dataclass(frozen=True)
class Search:
    """What a search is to try.

    Attributes
    ----------
    sides
        Both sides, with the zoo of changed cases.
    cells
        In the order in which they are tried.
    lines
        By case, the call that keeps it in a module of a zoo.
    """

    sides: Sides
    cells: tuple[Cell, ...]
    lines: Mapping[str, str]


def search(sides: Sides, known: ReachMap, near: Sequence[int], seed: int = 0) -> Search | None:
    """Return what to try for edits that some cells are near to; None where no cell can be changed.

    Parameters
    ----------
    near
        Numbers of cells in the map, the nearest first.
    """
    from executorch_goldens.exporting import changing

    of_case = {case.name: case for case in CASES if not case.is_build}
    bases: list[tuple[Cell, Case]] = []
    for number in near:
        cell = known.cells[number]
        case = of_case.get(cell.case)
        if case is not None and cell.seconds <= SLOWEST:
            bases.append((cell.cell, case))
    tries = list(_tries(bases[:NEAR], list(changing.CHANGES), seed))
    if not tries:
        return None
    unique = json.dumps(list(dict.fromkeys((case.module, case.name, changes) for case, changes, _ in tries)))
    os.environ[changing.VARIABLE] = unique
    changing.register(unique)
    base, head = (_with_changed(side, unique) for side in (sides.base, sides.head))
    names = [changing.name_of(case.name, changes) for case, changes, _ in tries]
    cells = tuple(
        dict.fromkeys(Cell(target, name) for name, (_, _, target) in zip(names, tries, strict=True))
    )
    lines = {
        name: f"{KEEP}{', '.join(map(repr, (case.module, case.name, *changes)))})"
        for name, (case, changes, _) in zip(names, tries, strict=True)
    }
    return Search(replace(sides, base=base, head=head, cells=cells), cells, lines)


def _with_changed(side: Side, wanted: str) -> Side:
    """Return a side that has the zoo of changed cases as well; `wanted` is the value of its variable."""
    from executorch_goldens.exporting import changing

    machine = side.settings.machine
    machine = replace(machine, environment={**machine.environment, changing.VARIABLE: wanted})
    settings = replace(side.settings, models=(*side.settings.models, ZOO), machine=machine)
    return replace(side, settings=settings)


def _tries(
    bases: Sequence[tuple[Cell, Case]], changes: Sequence[str], seed: int
) -> Iterator[tuple[Case, tuple[str, ...], str]]:
    """Yield cases, what is changed of each, and the target: every single change once, then pairs of changes."""
    chance = random.Random(seed)
    singles = [(cell, case, (change,)) for change in changes for cell, case in bases]
    chance.shuffle(singles)
    # Each change on some cell first, then on the others.
    first = list({chosen: (cell, case, chosen) for cell, case, chosen in singles}.values())
    rest = [each for each in singles if each not in first]
    pairs = [
        (cell, case, (one, other))
        for cell, case in bases
        for one in changes
        for other in changes
        if one != other
    ]
    chance.shuffle(pairs)
    mixed = [each for couple in zip(rest, pairs, strict=False) for each in couple]
    for cell, case, chosen in [*first, *mixed, *pairs[len(rest) :]][:MOST]:
        yield case, chosen, cell.target
