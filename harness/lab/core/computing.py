"""Computes the core of a zoo: few cheap cells that reach, on a release, all that the whole zoo reaches.

What a cell reaches is read from its golden: its target, the passes and partitioners that changed its graph, with their
pipelines, and the operators of its delegates with their attributes. No golden tells which node visitors ran:
`lab.coverage.visits` lists those of each cell. For passes that only cells without a golden reach, it names one cell.
What a cell costs is read from the committed seconds.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from executorch_goldens.artifact import STAGE, Cell
from executorch_goldens.goldens import golden
from executorch_goldens.registry import Case
from executorch_goldens.running.core import UPDATE, CoreError
from executorch_goldens.workers.seconds import Seconds, committed
from lab.coverage import visits
from lab.coverage.visits import SHOWN_VALUES
from lab.stock.issues import issue_cells

#: Of what a cell was taken for, this much is written out.
SHOWN = 3

#: Attributes whose values are numbers of nodes: they say nothing of what was lowered.
NUMBERS_OF_NODES = frozenset(("debug_handle",))
#: An operator, an attribute, or the head of whatever else a delegate's text has beside operators.
_LINE = re.compile(
    r"^(?:  operator (?P<operator>.*)|    (?P<name>\S+) = (?P<value>.*)|(?:  )?\w.*)$", re.MULTILINE
)
#: A constant in the place of a value: of it, only the type counts.
_CONSTANT = re.compile(r"(\w+\[[\d,]*\]) ")

_UNITS = Cell("xnnpack-fp32", "piecewise-units")
#: By release, cells that have operators or values of attributes that no golden tells of: they are known defects.
DEFECTS = {
    "1.1.0": (*(Cell("tosa-fp", name) for name in ("comparisons", "gather", "narrow-shifts")), _UNITS),
    "1.2.0": (*(Cell("tosa-fp", name) for name in ("bit-patterns", "conv-transpose2d")), _UNITS),
    "1.3.1": (Cell("tosa-fp", "bit-patterns"), _UNITS),
    "1.4.1": (Cell("tosa-u55", "narrow-shifts"),),
    "1.5.1": (Cell("tosa-u55", "narrow-shifts"),),
}

#: Of a zoo whose exports nobody has watched.
NO_COVERAGE = visits.Reached((), {}, {}, {})

#: What is reached, in words, to the cells that reach it.
Reached = Mapping[str, Collection[Cell]]


def reached(
    folder: Path, cells: Collection[Cell], coverage: visits.Reached = NO_COVERAGE
) -> dict[str, set[Cell]]:
    """Return what `cells` reach, as far as the goldens in a release's folder and its tables of coverage tell.

    Raises
    ------
    CoreError
        Where these name a cell that is not one of `cells`.
    """
    found: dict[str, set[Cell]] = defaultdict(set)
    values: dict[str, dict[str, set[Cell]]] = defaultdict(lambda: defaultdict(set))
    for cell in sorted(set(golden.recorded(folder)) & set(cells)):
        found[f"target {cell.target}"].add(cell)
        for file in sorted(golden.directory(folder, cell).iterdir()):
            text = file.read_text(encoding="utf-8")
            if file.name == golden.TRACE:
                for run in golden.read_trace(text):
                    if run.pipeline != STAGE:
                        found[f"pass {run.pipeline}: {run.name}"].add(cell)
            elif file.name.startswith("delegate_"):
                for operator, name, value in _operators(text):
                    where = f"{file.name.split('.')[1]}: {operator}"
                    found[f"operator {where}"].add(cell)
                    if name:
                        values[f"attribute {where} {name}"][value].add(cell)
    for attribute, by_value in values.items():
        # As the table does: many values are counted, and which they are is nobody's concern.
        for value, of_value in by_value.items():
            listed = value and len(by_value) <= SHOWN_VALUES
            found[f"{attribute} = {value}" if listed else attribute] |= of_value
    for visitor, visiting in coverage.visited.items():
        backend, _, name = visitor.partition(" ")
        found[f"visitor {backend}: {name}"] |= set(visiting)
    for name, example in coverage.examples():
        if f"pass {name}" not in found:
            found[f"pass {name}"].add(example)
    known = set(cells)
    for what, reaching in found.items():
        if unknown := reaching - known:
            raise CoreError(
                f"harness/lab/coverage/reached says that {min(unknown)} reaches {what}, and there is no such cell: run "
                "nox -s lab -- coverage --update"
            )
    return found


def _operators(text: str) -> Iterator[tuple[str, str, str]]:
    r"""Yield each operator of a delegate's text, then again with each attribute and its value.

    >>> list(_operators("graph main\n  value a: INT8[1]\n    x = 1\n  operator ADD\n    input a\n    axis = 2\n"))
    [('ADD', '', ''), ('ADD', 'axis', '2')]
    """
    operator = None
    for line in _LINE.finditer(text):
        if line["name"] is None:
            operator = line["operator"]
        if operator is None:
            continue
        name, value = line["name"] or "", line["value"] or ""
        constant = _CONSTANT.match(value)
        yield operator, name, "" if name in NUMBERS_OF_NODES else constant[1] if constant else value


def cover(wanted: Reached, first: Sequence[Cell], seconds: Seconds) -> dict[Cell, list[str]]:
    """Return `first` and few further cells that reach all of `wanted`, each with what it was taken for.

    Greedy: the cells that alone reach something, then always the one that takes least seconds for each thing that it
    reaches of what is left. What the others reach as well goes again, the dearest first. Ties go by name, and so the
    answer is the same wherever it is computed.
    """
    alone = sorted({cell for cells in wanted.values() if len(cells) == 1 for cell in cells} - set(first))
    price = {cell: seconds.of(cell) for cell in set().union(*wanted.values())}
    chosen: dict[Cell, None] = dict.fromkeys((*first, *alone))
    left = {what: set(cells) for what, cells in wanted.items() if not set(cells) & chosen.keys()}
    while left:
        counts = Counter(cell for cells in left.values() for cell in cells)
        best = min(counts, key=lambda cell: (price[cell] / counts[cell], cell))
        chosen[best] = None
        left = {what: cells for what, cells in left.items() if best not in cells}
    for cell in sorted(chosen.keys() - {*first, *alone}, key=lambda cell: (-price[cell], cell)):
        others = chosen.keys() - {cell}
        if all(others & set(cells) for cells in wanted.values() if cell in cells):
            del chosen[cell]
    return _shared_out(wanted, chosen)


def _shared_out(wanted: Reached, chosen: Iterable[Cell]) -> dict[Cell, list[str]]:
    """Return each of the cells with what it reaches and none before it does."""
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
