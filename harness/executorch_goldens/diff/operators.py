"""Sets the operators of two artifacts side by side, delegate by delegate, under the names of the second."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.payloads import graph_pairs
from executorch_goldens.diff.side import GraphSide
from executorch_goldens.goldens.outline import OutlineGraph, described
from executorch_goldens.goldens.record import Record

#: States of an operator against the same one of the other artifact.
SAME, CHANGED, REPLACED, ADDED, REMOVED = "same", "changed", "replaced", "added", "removed"
#: Numbers of a constant that its line has; a longer one has its digest.
SHOWN_NUMBERS = 16
#: Lines before and after a change.
CONTEXT = 3


@dataclass(frozen=True)
class Row:
    """An operator of one artifact beside the same of the other.

    Attributes
    ----------
    label
        Its type and first output.
    before, after
        Its lines: type and outputs, inputs, attributes. Empty where it is not there.
    marked
        Lines that only one side has.
    was, at
        Its number in the graph before and in the graph after; None where it is not there.
    """

    state: str
    label: str
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    marked: frozenset[str] = frozenset()
    was: int | None = None
    at: int | None = None


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
    rows = []
    for at in range(len(after.operators)):
        lines = _lines(side, at, {})
        was = (lines, at) if before is not None else ((), None)
        rows.append(Row(state, side.label(at), was[0], lines, was=was[1], at=at))
    names = {} if before is None else {name: name for name in after.values}
    return Listing(delegate, f"{delegate} {after.name}", rows, names, before, after)


def rows(pair: Pairing) -> Iterator[Row]:
    """Yield the operators in the new order, deleted ones before their old successors."""
    back = pair.matching.back | {other: one for one, other in pair.matching.replaced}
    gone = [at for at in range(len(pair.before.operators)) if at not in back.values()]
    for at, _ in enumerate(pair.after.operators):
        was = back.get(at)
        while was is not None and gone and gone[0] < was:
            yield _removed(pair, gone.pop(0))
        label, now = pair.after.label(at), _lines(pair.after, at, {})
        if was is None:
            yield Row(ADDED, label, after=now, at=at)
            continue
        old = _lines(pair.before, was, pair.names)
        state = REPLACED if was not in pair.matching.forth else SAME if old == now else CHANGED
        yield Row(state, label, old, now, frozenset({*old} ^ {*now}), was, at)
    for at in gone:
        yield _removed(pair, at)


def _removed(pair: Pairing, at: int) -> Row:
    return Row(REMOVED, pair.before.label(at), before=_lines(pair.before, at, pair.names), was=at)


def _lines(side: GraphSide, at: int, names: Mapping[str, str]) -> tuple[str, ...]:
    operator = side.operators[at]
    lines = [operator.type]
    lines += [f"→ {names.get(name, name)}: {_held(side.graph, name)}" for name in side.outputs(at)]
    lines += [
        f"{role} {names.get(name, name)}" for role, name in operator.inputs if name not in side.outputs(at)
    ]
    lines += [f"{name} = {value}" for name, value in described(operator.attributes)]
    return tuple(lines)


def _held(graph: OutlineGraph, name: str) -> str:
    """Return the type of a value, and where it is a constant its numbers, or of many the ends and a digest."""
    value = graph.values.get(name)
    if value is None:
        return "?"
    if value.contents is None:
        return value.type
    facts = value.contents.facts
    numbers = facts.get("values", "").split()
    if 0 < len(numbers) <= SHOWN_NUMBERS:
        return f"{value.type} {' '.join(numbers)}"
    ends = "".join(f" {name} {facts[name]}" for name in ("min", "max") if name in facts)
    return f"{value.type}{ends} sha256 {value.contents.sha256[:12]}"


# Texts


@dataclass(frozen=True)
class Hunk:
    """A place where two texts differ: the lines of each, and whether the other lacks them."""

    before: list[tuple[str, bool]]
    after: list[tuple[str, bool]]


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
