"""Draws a core: few cheap cells that keep what a core must keep."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from executorch_goldens.running.core import UPDATE
from lab.core.wanted import DEAR, Cells, Source, numbers_of
from lab.reach.owners import bits

#: Of what a cell was taken for, this much is written out.
SHOWN = 3


def cover(wanted: Iterable[Cells], first: Collection[int], price: Sequence[float]) -> list[int]:
    """Return `first` and few further cells, one of each of `wanted` among them.

    Greedy: always the one that costs least for each of what is left; then redundant cells are removed, the dearest
    first. Ties go by number, and so the answer is the same wherever it is computed.
    """
    begun = bits(first)
    rows = [row for row in narrowest(wanted) if not row & begun]
    taken = _greedy(rows, price)
    chosen = bits(taken)
    for cell in sorted(taken, key=lambda each: (-price[each], each)):
        others = chosen & ~(1 << cell)
        if all(row & others for row in rows if row >> cell & 1):
            chosen = others
    return [*first, *(cell for cell in taken if chosen >> cell & 1)]


def narrowest(wanted: Iterable[Cells]) -> list[Cells]:
    """Return those of `wanted` of which none is a part: who has a cell of each has a cell of all.

    >>> narrowest([0b110, 0b111, 0b001, 0b110])
    [1, 6]
    """
    kept: list[Cells] = []
    for row in sorted(set(wanted), key=lambda each: (each.bit_count(), each)):
        if row and not any(narrow & row == narrow for narrow in kept):
            kept.append(row)
    return kept


def _greedy(rows: Sequence[Cells], price: Sequence[float], budget: float = math.inf) -> list[int]:
    """Return cells of all rows, the best bargain first; those of a budget alone."""
    left, taken = list(rows), []
    counts = Counter(cell for row in rows for cell in numbers_of(row))
    waiting = [(price[cell] / number, cell) for cell, number in counts.items()]
    heapq.heapify(waiting)
    while left and waiting:
        cost, cell = heapq.heappop(waiting)
        number = sum(row >> cell & 1 for row in left)
        if not number or price[cell] > budget:
            continue
        if price[cell] / number > cost:
            heapq.heappush(waiting, (price[cell] / number, cell))
            continue
        taken.append(cell)
        budget -= price[cell]
        left = [row for row in left if not row >> cell & 1]
    return taken


def drawn(source: Source) -> list[int]:
    """Return the core of a release, by the numbers of its cells.

    It runs the statements that the committed one runs, kills the mutants and sees the fixes that any candidate of at
    most `DEAR` seconds is known to, shows the issues, and has each target. What is left of the committed one's seconds
    goes to cells that run most further statements for a second.
    """
    price = [each.seconds for each in source.known.cells]
    statements = [each & source.candidates for each in source.statements]
    wanted = [each for each in statements if each & source.committed]
    wanted += [cells for _, cells in source.must()]
    chosen = cover(wanted, sorted(source.always), price)
    ran = bits(chosen)
    rest = source.seconds(source.committed) - source.seconds(ran)
    return [*chosen, *_greedy([each for each in statements if each and not each & ran], price, rest)]


def lacking(source: Source, cells: Cells) -> list[str]:
    """Return what some cells lack of what a core must have, statements aside."""
    return [
        *(f"a golden of {cell}" for cell in source.gone),
        *(name for name, having in source.must() if not having & cells),
        *(f"{why} by {source.cell(cell)}" for cell, why in source.always.items() if not cells >> cell & 1),
    ]


def superfluous(source: Source, cells: Cells) -> list[int]:
    """Return candidates outside of a core without which the others still show everything, the dearest first.

    Everything is: each function in each of its situations, each mutant, each fix.
    """
    rows = [*source.situations().values(), *(having for _, having in source.shows())]
    by_cell: dict[int, list[Cells]] = {}
    for row in rows:
        for cell in numbers_of(row):
            by_cell.setdefault(cell, []).append(row)
    left, found = source.candidates, []
    for cell in sorted(
        numbers_of(source.candidates & ~cells), key=lambda each: (-source.known.cells[each].seconds, each)
    ):
        others = left & ~(1 << cell)
        if all(row & others for row in by_cell.get(cell, ())):
            left = others
            found.append(cell)
    return found


def text(source: Source, chosen: Sequence[int]) -> str:
    """Return the text of a release's core."""
    number, of = len(chosen), source.candidates.bit_count()
    lines = [
        f"# The core of the zoo on ExecuTorch {source.known.release}: {number} of {of} cells. They run",
        f"# {source.reached(bits(chosen))} statements of the map of reach, kill the mutants and see the fixes",
        f"# that any cell with a golden and of at most {DEAR:.0f} s is known to, and show the issues. "
        f"Written by: {UPDATE}",
    ]
    must, statements = dict(source.shows()), list(source.statements)
    for cell in chosen:
        why = [source.always[cell]] if cell in source.always else []
        why += shown([name for name, having in must.items() if having >> cell & 1])
        number = sum(having >> cell & 1 for having in statements)
        if number:
            why.append(f"{number} statements")
        must = {name: having for name, having in must.items() if not having >> cell & 1}
        statements = [having for having in statements if not having >> cell & 1]
        lines.append(f"{source.cell(cell)}  {'; '.join(why)}")
    return "".join(f"{line}\n" for line in lines)


def shown(names: Sequence[str]) -> list[str]:
    """Return a few of some names, and how many more there are."""
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return [*names[:SHOWN], *more]
