"""Coverage of a zoo's cells, from their goldens and the coverage files.

What a cell reaches is read from its golden: its target, the passes and partitioners that changed its graph, with their
pipelines, and the operators of its delegates with their attributes. No golden tells which node visitors ran:
`lab.coverage.visits` lists those of each cell. For passes that only cells without a golden reach, it names one cell.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from executorch_goldens.artifact import STAGE, Cell
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.running.core import CoreError
from lab.coverage import visits
from lab.coverage.visits import SHOWN_VALUES

#: Attributes whose values are numbers of nodes: they say nothing of what was lowered.
NUMBERS_OF_NODES = frozenset(("debug_handle",))
#: An operator, an attribute, or the head of whatever else a delegate's text has beside operators.
_LINE = re.compile(
    r"^(?:  operator (?P<operator>.*)|    (?P<name>\S+) = (?P<value>.*)|(?:  )?\w.*)$", re.MULTILINE
)
#: A constant in the place of a value: of it, only the type counts.
_CONSTANT = re.compile(r"(\w+\[[\d,]*\]) ")

#: Of a zoo whose exports nobody has watched.
NO_COVERAGE = visits.Reached((), {}, {}, {})

#: Reached features, as text, with the cells that reach them.
Reached = Mapping[str, Collection[Cell]]


def reached(
    folder: Path, cells: Collection[Cell], coverage: visits.Reached = NO_COVERAGE
) -> dict[str, set[Cell]]:
    """Return the coverage of `cells`, by the goldens in a release's folder and its tables of coverage.

    Raises
    ------
    CoreError
        Where these name a cell that is not one of `cells`.
    """
    found: dict[str, set[Cell]] = defaultdict(set)
    values: dict[str, dict[str, set[Cell]]] = defaultdict(lambda: defaultdict(set))
    for cell in sorted(set(golden.recorded(folder)) & set(cells)):
        for what, value in _of_golden(folder, cell):
            if value is None:
                found[what].add(cell)
            else:
                values[what][value].add(cell)
    for what, of_value in _counted(values):
        found[what] |= of_value
    for visitor, visiting in coverage.visited.items():
        backend, _, name = visitor.partition(" ")
        found[f"visitor {backend}: {name}"] |= set(visiting)
    for name, example in coverage.examples():
        if f"pass {name}" not in found:
            found[f"pass {name}"].add(example)
    _require_known(found, cells)
    return found


def _of_golden(folder: Path, cell: Cell) -> Iterator[tuple[str, str | None]]:
    """Yield the features that the golden of a cell shows; with a value, that is an attribute."""
    yield f"target {cell.target}", None
    for file in sorted(golden.directory(folder, cell).iterdir()):
        text = file.read_text(encoding="utf-8")
        if file.name == golden.TRACE:
            runs = (run for run in rendering.read_trace(text) if run.pipeline != STAGE)
            yield from ((f"pass {run.pipeline}: {run.name}", None) for run in runs)
        elif file.name.startswith("delegate_"):
            yield from _of_delegate(file.name.split(".")[1], text)


def _of_delegate(kind: str, text: str) -> Iterator[tuple[str, str | None]]:
    for operator, name, value in _operators(text):
        yield f"operator {kind}: {operator}", None
        if name:
            yield f"attribute {kind}: {operator} {name}", value


def _counted(values: Mapping[str, Mapping[str, set[Cell]]]) -> Iterator[tuple[str, set[Cell]]]:
    """Yield the attributes with their values, as the table does: where there are many, no matter which they are."""
    for attribute, by_value in values.items():
        for value, of_value in by_value.items():
            listed = value and len(by_value) <= SHOWN_VALUES
            yield f"{attribute} = {value}" if listed else attribute, of_value


def _require_known(found: Reached, cells: Collection[Cell]) -> None:
    known = set(cells)
    for what, reaching in found.items():
        if unknown := set(reaching) - known:
            raise CoreError(
                f"harness/lab/coverage/reached says that {min(unknown)} reaches {what}, and there is no such cell: run "
                "nox -s lab -- coverage --update"
            )


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
