"""Computes the core of a zoo: few cheap cells that reach, on a release, all that the whole zoo reaches.

What each cell reaches, `lab.core.reading` reads. What a cell costs is read from the committed seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.running.core import UPDATE
from executorch_goldens.sweep.seconds import Seconds, committed
from executorch_goldens.zoo.registry import Case
from lab.core.reading import Reached, reached
from lab.coverage import visits
from lab.stock.issues import issue_cells

#: Of what a cell was taken for, this much is written out.
SHOWN = 3

_UNITS = Cell("xnnpack-fp32", "piecewise-units")
#: By release, cells that have operators or values of attributes that no golden tells of: they are known defects.
DEFECTS = {
    "1.1.0": (*(Cell("tosa-fp", name) for name in ("comparisons", "gather", "narrow-shifts")), _UNITS),
    "1.2.0": (*(Cell("tosa-fp", name) for name in ("bit-patterns", "conv-transpose2d")), _UNITS),
    "1.3.1": (Cell("tosa-fp", "bit-patterns"), _UNITS),
    "1.4.1": (Cell("tosa-fp", "argmax"), Cell("tosa-u55", "narrow-shifts")),
    "1.5.1": (Cell("tosa-u55", "narrow-shifts"),),
}


def cover(wanted: Reached, first: Sequence[Cell], seconds: Seconds) -> dict[Cell, list[str]]:
    """Return `first` and few further cells that reach all of `wanted`, each with the reason it was chosen for.

    Greedy: the cells that alone reach something, then always the one that takes least seconds for each thing that it
    reaches of what is left. What the others reach as well goes again, the dearest first. Ties go by name, and so the
    answer is the same wherever it is computed.
    """
    alone = sorted({cell for cells in wanted.values() if len(cells) == 1 for cell in cells} - set(first))
    price = {cell: seconds.of(cell) for cell in set().union(*wanted.values())}
    needed = dict.fromkeys((*first, *alone))
    taken = _greedy(wanted, needed.keys(), price)
    return _shared_out(wanted, [*needed, *_not_needless(wanted, needed, taken, price)])


def _greedy(wanted: Reached, needed: AbstractSet[Cell], price: Mapping[Cell, float]) -> list[Cell]:
    """Return cells that reach what `needed` ones do not, the best bargain first."""
    taken = []
    left = {what: cells for what, cells in wanted.items() if needed.isdisjoint(cells)}
    while left:
        counts = Counter(cell for cells in left.values() for cell in cells)
        best = min(counts, key=lambda cell: (price[cell] / counts[cell], cell))
        taken.append(best)
        left = {what: cells for what, cells in left.items() if best not in cells}
    return taken


def _not_needless(
    wanted: Reached, needed: Collection[Cell], taken: Sequence[Cell], price: Mapping[Cell, float]
) -> list[Cell]:
    """Return the cells of `taken` that remain after dropping redundant ones, dearest first."""
    chosen = {*needed, *taken}
    for cell in sorted(taken, key=lambda cell: (-price[cell], cell)):
        others = chosen - {cell}
        if all(not others.isdisjoint(cells) for cells in wanted.values() if cell in cells):
            chosen = others
    return [cell for cell in taken if cell in chosen]


def _shared_out(wanted: Reached, chosen: Iterable[Cell]) -> dict[Cell, list[str]]:
    """Return each of the cells with the part that none before it reaches."""
    left = dict(wanted)
    shares = {}
    for cell in chosen:
        shares[cell] = sorted(what for what, cells in left.items() if cell in cells)
        for what in shares[cell]:
            del left[what]
    return shares


def text(
    version: str,
    folder: Path,
    cells: Sequence[Cell],
    cases: Collection[Case],
    coverage: visits.Reached,
) -> str:
    """Return the text of a release's core.

    Parameters
    ----------
    folder
        Of the release's goldens.
    cells, cases
        All of the zoo on this release.
    """
    always = {
        cell: f"issue #{number}" for number, of_issue in issue_cells(cases).items() for cell in of_issue
    }
    always |= dict.fromkeys(DEFECTS.get(version, ()), "a known defect that has what no golden tells of")
    wanted = reached(folder, cells, coverage)
    core = cover(wanted, [cell for cell in always if cell in cells], committed(folder))
    lines = [
        f"# The core of the zoo on ExecuTorch {version}: {len(core)} of {len(cells)} cells. They reach the",
        f"# {len(wanted)} passes, node visitors, operators, attributes and targets that the zoo reaches, and show the",
        f"# issues. Written by: {UPDATE}",
    ]
    for cell, taken_for in core.items():
        why = [always[cell]] if cell in always else []
        why += taken_for[:SHOWN]
        if len(taken_for) > SHOWN:
            why.append(f"and {len(taken_for) - SHOWN} more")
        lines.append(f"{cell}  {'; '.join(why)}")
    return "".join(f"{line}\n" for line in lines)
