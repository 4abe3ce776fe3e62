"""Coverage of a release by a zoo: passes that change a graph, node visitors that serialize, and their attributes.

``python -m lab coverage`` exports every cell of the installed release once and compares what it saw with two
committed tables in ``reached/``: ``<release>.tsv`` has the passes, visitors and operators, and ``<release>-cells.tsv``
the node visitors of each cell. `lab.coverage.page` makes harness/lab/docs/coverage/<release>.md of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.artifact import STAGE, Artifact, Cell, Lowered, Outcome
from executorch_goldens.goldens.rendering import decode_delegates
from lab import tables
from lab.tables import TableError

#: The tables of each release.
REACHED = Path(__file__).resolve().parent / "reached"
#: An attribute with more values than this has them counted, not listed.
SHOWN_VALUES = 6
_COUNTED = re.compile(r"(\d+) values")
#: Each of the values that are listed; a list or tuple among them has commas of its own.
_LISTED = re.compile(r"(?:\[[^]]*\]|\([^)]*\)|[^,[(])+(?=, |$)")

#: Columns of the first table. A pass counts the cells in which it ran and in which it changed the graph, and its detail
#: is one of the latter. The detail of an operator is its attributes with their values. A visitor has none of these: its
#: cells are in the second table.
COLUMNS = ("kind", "owner", "name", "entered", "changed", "detail")
PASS, VISITOR, OPERATOR = "pass", "visitor", "operator"
#: Columns of the second table; the visitors of a cell are ``backend target``, with a semicolon between them.
CELL_COLUMNS = ("cell", "visitors")


def table_of(version: str) -> Path:
    return REACHED / f"{version}.tsv"


def cells_of(version: str) -> Path:
    return REACHED / f"{version}-cells.tsv"


@dataclass
class Coverage:
    """The coverage of some exports.

    Attributes
    ----------
    entered, changed
        (pipeline, pass) to the cells in which it ran, and in which it changed the graph.
    visitors
        ``backend target`` to the cells in which it serialized a node.
    attributes
        (``tosa`` or ``xnnpack``, operator) to attribute to the values it had.
    """

    entered: dict[tuple[str, str], set[Cell]] = field(default_factory=lambda: defaultdict(set))
    changed: dict[tuple[str, str], set[Cell]] = field(default_factory=lambda: defaultdict(set))
    visitors: dict[str, set[Cell]] = field(default_factory=lambda: defaultdict(set))
    attributes: dict[tuple[str, str], dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )

    def add(self, outcome: Outcome) -> None:
        """Count the coverage of one export; a crash reports none."""
        artifact = outcome.result
        if not isinstance(artifact, Artifact) or artifact.watched is None:
            return
        for run in (run for run in artifact.watched.passes if run.pipeline != STAGE):
            self.entered[run.pipeline, run.name].add(outcome.cell)
            if run.changed:
                self.changed[run.pipeline, run.name].add(outcome.cell)
        for visitor in artifact.watched.visitors:
            self.visitors[visitor].add(outcome.cell)
        if isinstance(artifact.result, Lowered):
            for decoded in decode_delegates(artifact.result):
                for operator in (operator for graph in decoded.graphs for operator in graph.operators):
                    seen = self.attributes[decoded.kind, operator.type]
                    for name, value in operator.attributes.items():
                        seen[name].add(str(value))


@dataclass(frozen=True)
class PassRow:
    """A pass in its pipeline.

    Attributes
    ----------
    entered, changed
        Number of cells in which it ran, and in which it changed the graph.
    example
        One of the cells counted by `changed`, None where there is none.
    """

    pipeline: str
    name: str
    entered: int
    changed: int
    example: Cell | None


@dataclass(frozen=True)
class Reached:
    """The coverage of a release by a zoo, as the two tables have it.

    Attributes
    ----------
    passes
        Pipeline by pipeline, in the order in which they run.
    visitors
        The targets that each backend has a visitor for, by name.
    visited
        The cells of each visitor that serialized a node, by ``backend target``.
    operators
        For each kind of payload, its operators with their attributes and the values these had.
    """

    passes: tuple[PassRow, ...]
    visitors: Mapping[str, tuple[str, ...]]
    visited: Mapping[str, set[Cell]]
    operators: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, coverage: Coverage, visitors: Mapping[str, Iterable[str]]) -> Reached:
        """Return the coverage of exports.

        Parameters
        ----------
        visitors
            The targets that each backend has a visitor for; a patch may bring others, which are not counted.
        """
        passes = []
        for pipeline, name in sorted(coverage.entered, key=lambda key: key[0]):
            changed = coverage.changed.get((pipeline, name), set())
            entered = len(coverage.entered[pipeline, name])
            passes.append(PassRow(pipeline, name, entered, len(changed), min(changed, default=None)))
        ordered = {backend: tuple(sorted(names)) for backend, names in visitors.items()}
        known = {f"{backend} {name}" for backend, names in ordered.items() for name in names}
        operators: dict[str, dict[str, str]] = defaultdict(dict)
        for (kind, operator), attributes in sorted(coverage.attributes.items()):
            seen = (f"{name}: {values(of_name)}" for name, of_name in attributes.items())
            operators[kind][operator] = "; ".join(seen)
        visited = {name: cells for name, cells in coverage.visitors.items() if name in known and cells}
        return cls(tuple(passes), ordered, visited, dict(operators))

    @classmethod
    def read(cls, version: str) -> Reached:
        """Return the committed tables of a release; raise TableError."""
        file = table_of(version)
        passes = []
        visitors: dict[str, list[str]] = defaultdict(list)
        operators: dict[str, dict[str, str]] = defaultdict(dict)
        for row in tables.read(file, COLUMNS):
            if row["kind"] == VISITOR:
                visitors[row["owner"]].append(row["name"])
            elif row["kind"] == OPERATOR:
                operators[row["owner"]][row["name"]] = row["detail"]
            else:
                example = _cell(file, row["detail"]) if row["detail"] else None
                counts = (int(row["entered"]), int(row["changed"]))
                passes.append(PassRow(row["owner"], row["name"], *counts, example))
        ordered = {backend: tuple(names) for backend, names in visitors.items()}
        return cls(tuple(passes), ordered, visited(cells_of(version)), dict(operators))

    def texts(self) -> tuple[str, str]:
        """Return the texts of the two tables."""
        rows: list[tuple[object, ...]] = [
            (PASS, each.pipeline, each.name, each.entered, each.changed, each.example or "")
            for each in self.passes
        ]
        for backend, names in self.visitors.items():
            rows += [(VISITOR, backend, name, "", "", "") for name in names]
        for kind, operators in self.operators.items():
            rows += [(OPERATOR, kind, name, "", "", seen) for name, seen in operators.items()]
        by_cell: dict[Cell, list[str]] = defaultdict(list)
        for visitor in sorted(self.visited):
            for cell in self.visited[visitor]:
                by_cell[cell].append(visitor)
        cells = ((cell, "; ".join(by_cell[cell])) for cell in sorted(by_cell))
        return (
            tables.text(COLUMNS, (dict(zip(COLUMNS, row, strict=True)) for row in rows)),
            tables.text(CELL_COLUMNS, (dict(zip(CELL_COLUMNS, row, strict=True)) for row in cells)),
        )

    def joined(self, further: Reached) -> Reached:
        """Return the union of both, `further` by cells that are not counted here.

        A mere number of values stays one: it is the least that there are, until all cells are exported again.
        """
        passes = {(each.pipeline, each.name): each for each in self.passes}
        for new in further.passes:
            old = passes.get((new.pipeline, new.name), new)
            if old is not new:
                examples = [example for example in (old.example, new.example) if example is not None]
                counts = (old.entered + new.entered, old.changed + new.changed)
                new = PassRow(new.pipeline, new.name, *counts, min(examples, default=None))
            passes[new.pipeline, new.name] = new
        visited = {
            name: {*self.visited.get(name, ()), *further.visited.get(name, ())}
            for name in {**self.visited, **further.visited}
        }
        operators = {kind: dict(of_kind) for kind, of_kind in self.operators.items()}
        for kind, of_kind in further.operators.items():
            known = operators.setdefault(kind, {})
            for name, seen in of_kind.items():
                known[name] = _joined(known.get(name, ""), seen)
            operators[kind] = dict(sorted(known.items()))
        ordered = sorted(passes.values(), key=lambda each: each.pipeline)
        return Reached(tuple(ordered), further.visitors, visited, operators)

    def counted(self) -> set[Cell]:
        """Return the cells that are known to be counted: those that a visitor serialized a node of."""
        return set().union(*self.visited.values()) if self.visited else set()

    def examples(self) -> Iterator[tuple[str, Cell]]:
        """Yield each pass that changes a graph, as ``pipeline: pass``, with a cell in which it does."""
        for each in self.passes:
            if each.example is not None:
                yield f"{each.pipeline}: {each.name}", each.example


def visited(file: Path) -> dict[str, set[Cell]]:
    """Return the cells of each visitor, ``backend target``, from the second table; raise TableError."""
    found: dict[str, set[Cell]] = defaultdict(set)
    for row in tables.read(file, CELL_COLUMNS):
        cell = _cell(file, row["cell"])
        for visitor in row["visitors"].split("; "):
            found[visitor].add(cell)
    return dict(found)


def _cell(file: Path, name: str) -> Cell:
    try:
        return Cell.named(name)
    except ValueError:
        raise TableError(file, f"names {name!r:.80}, which is no cell") from None


def _joined(one: str, other: str) -> str:
    """Return the attributes of an operator with the values of both texts.

    >>> _joined("axis: 0, 1; shape: [1, 2], [3]; pad: 7 values", "axis: 2; shape: [1, 2]; pad: [4, 5]")
    'axis: 0, 1, 2; shape: [1, 2], [3]; pad: 7 values'
    >>> _joined("stride: (1, 1), (2, 2)", "stride: (1, 1), (4, 1)")
    'stride: (1, 1), (2, 2), (4, 1)'
    """
    found: dict[str, str] = {}
    for attribute in (text for text in (*one.split("; "), *other.split("; ")) if text):
        name, _, seen = attribute.partition(": ")
        both = [found[name], seen] if name in found else [seen]
        counts = [int(count[1]) for text in both if (count := _COUNTED.fullmatch(text))]
        listed = {
            value.strip() for text in both if not _COUNTED.fullmatch(text) for value in _LISTED.findall(text)
        }
        found[name] = f"{max(*counts, len(listed))} values" if counts else values(listed)
    return "; ".join(f"{name}: {seen}" for name, seen in found.items())


def values(seen: set[str]) -> str:
    """Return the values of an attribute, or their number if they are many."""
    return f"{len(seen)} values" if len(seen) > SHOWN_VALUES else ", ".join(sorted(seen))
