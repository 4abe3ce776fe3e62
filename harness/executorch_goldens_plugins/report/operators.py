"""The operators of two artifacts side by side, delegate by delegate, and the places where their texts differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.operators import ADDED, CHANGED, SAME, Row, lines, rows
from executorch_goldens.diff.payloads import graph_pairs
from executorch_goldens.diff.side import GraphSide
from executorch_goldens.goldens.outline import OutlineGraph
from executorch_goldens.goldens.record import Record

#: Lines before and after a change.
CONTEXT = 3


@dataclass(frozen=True)
class Hunk:
    """A place where two texts differ: the lines of each, and whether the other lacks them."""

    before: list[tuple[str, bool]]
    after: list[tuple[str, bool]]


@dataclass(frozen=True)
class Listing:
    """The operators of a graph of a delegate.

    Attributes
    ----------
    name
        ``delegate_0 main/main``.
    names
        Value of the graph before to the same value of the graph after.
    """

    delegate: str
    name: str
    rows: Sequence[Row]
    names: Mapping[str, str]
    before: OutlineGraph | None
    after: OutlineGraph

    @property
    def renamed(self) -> int:
        """How many values differ in nothing but their name."""
        return sum(was != now for was, now in self.names.items())

    def hunks(self) -> list[Hunk]:
        """Return the text of the differences, each place with the operator before and after it."""
        near = {at + by for at, row in enumerate(self.rows) if row.state != SAME for by in (-1, 0, 1)}
        found: list[Hunk] = []
        for at, row in enumerate(self.rows):
            if at in near:
                if not found or at - 1 not in near:
                    found.append(Hunk([], []))
                found[-1].before.extend(_shortened(row, row.before))
                found[-1].after.extend(_shortened(row, row.after))
        return found

    @property
    def runs(self) -> list[list[Row]]:
        """The rows, those that are the same and follow each other in one list, each other one alone."""
        runs: list[list[Row]] = []
        for row in self.rows:
            if row.state == SAME and runs and runs[-1][0].state == SAME:
                runs[-1].append(row)
            else:
                runs.append([row])
        return runs


def _shortened(row: Row, lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the first of an operator's lines, and those that differ with the lines around them."""
    # An operator that stays itself is marked by its lines, one that does not as a whole.
    marks = [row.state not in (SAME, CHANGED) or line in row.marked for line in lines]
    for at, line in enumerate(lines):
        if at == 0:
            yield line, marks[0]
        elif any(marks[max(at - CONTEXT, 0) : at + CONTEXT + 1]):
            yield f"  {line}", marks[at]


def listings(before: Record | None, after: Record) -> Iterator[Listing]:
    """Yield the operators of every delegate, beside those of `before` where that has the delegate as well."""
    for name, payload in after.delegates.items():
        delegate, graphs = name.partition(".")[0], payload.graphs
        old = before.delegates.get(name) if before is not None else None
        if old is not None and old.text == payload.text:
            yield from (_unmatched(delegate, SAME, graph, graph) for graph in graphs)
            continue
        pairs = graph_pairs(old.graphs, graphs) if old is not None else []
        for one, other in pairs:
            pair = Pairing(one, other)
            yield Listing(delegate, f"{delegate} {other.name}", list(rows(pair)), pair.names, one, other)
        for graph in graphs[len(pairs) :]:
            yield _unmatched(delegate, SAME if before is None else ADDED, None, graph)


def _unmatched(delegate: str, state: str, before: OutlineGraph | None, after: OutlineGraph) -> Listing:
    """Return the operators of a graph where nothing has to be matched: both have the same one, or one has none."""
    side = GraphSide(after)
    of_graph = []
    for at in range(len(after.operators)):
        found = lines(side, at, {})
        was = (found, at) if before is not None else ((), None)
        of_graph.append(Row(state, side.label(at), was[0], found, was=was[1], at=at))
    names = {} if before is None else {name: name for name in after.values}
    return Listing(delegate, f"{delegate} {after.name}", of_graph, names, before, after)


def hunks(before: str, after: str) -> Iterator[Hunk]:
    r"""Yield the places where two texts differ.

    >>> list(hunks("a\nb\n", "a\nc\n"))
    [Hunk(before=[('a', False), ('b', True)], after=[('a', False), ('c', True)])]
    """
    ours, theirs = before.splitlines(), after.splitlines()
    for group in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_grouped_opcodes(CONTEXT):
        yield Hunk(
            [(line, tag != "equal") for tag, start, end, _, _ in group for line in ours[start:end]],
            [(line, tag != "equal") for tag, _, _, start, end in group for line in theirs[start:end]],
        )
