"""Compares two graphs, operator by matched operator."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from executorch_goldens.diff.changes import (
    AttributeChanged,
    BoundaryChanged,
    Change,
    EdgeRewired,
    OperatorAdded,
    OperatorRemoved,
    OperatorReplaced,
    PartChanged,
    Renamed,
    Reordered,
)
from executorch_goldens.diff.matching import Matching, match
from executorch_goldens.diff.side import GraphSide
from executorch_goldens.diff.values import ABSENT, EXAMPLES, attribute_changes, content_changes
from executorch_goldens.goldens.outline import NUMBERING, OutlineGraph

#: The attribute that names a constant which is not in the payload. Its key ends in the SHA-256 of the constant
#: (``get_serialized_buffer_index`` in ExecuTorch's ``backends/xnnpack/operators/node_visitor.py``).
MISSING = "constant_data.missing"
DIGEST = slice(-64, None)
#: Attributes of TOSA's control flow that name the regions to run.
NAMES_OF_GRAPHS = frozenset({"then_graph", "else_graph", "cond_graph", "body_graph"})


def graph_changes(
    before: OutlineGraph, after: OutlineGraph, where: str, regions: Mapping[str, str]
) -> list[Change]:
    """Return the changes of a graph; `regions` maps names of regions before to those after.

    Where inputs in a different order explain all that reads different inputs, the order is the change.
    """
    changes = list(Pairing(before, after, where, regions).changes())
    turned = _turned(before, after, changes)
    if turned is None:
        return changes
    others = list(Pairing(before, turned, where, regions).changes())
    if any(isinstance(change, EdgeRewired) for change in others):
        return changes
    return [BoundaryChanged(where, "inputs", before.inputs, after.inputs, order_only=True), *others]


def _turned(before: OutlineGraph, after: OutlineGraph, changes: Sequence[Change]) -> OutlineGraph | None:
    """Return `after` with its inputs in the order of `before`, if a different order explains the rewired edges.

    Inputs are matched by their places. If all names kept theirs, no input moved: operators read different inputs.
    """
    moved = {change.before: change.after for change in changes if isinstance(change, EdgeRewired)}
    places = {name: at for at, name in enumerate(after.inputs)}
    swapped = set(moved) == set(moved.values()) and set(moved) <= set(places)
    if not moved or not swapped or len(before.inputs) != len(places):
        return None
    if all(before.inputs[places[name]] == name for name in moved):
        return None
    return replace(after, inputs=tuple(moved.get(name, name) for name in after.inputs))


class Pairing:
    """Matching operators and values of two graphs, whatever their names and positions.

    Attributes
    ----------
    names
        Value of the graph before to the same value of the graph after.
    """

    def __init__(
        self,
        before: OutlineGraph,
        after: OutlineGraph,
        where: str = "",
        regions: Mapping[str, str] | None = None,
    ) -> None:
        self.before, self.after = GraphSide(before), GraphSide(after)
        self.where, self.regions = where, regions or {}
        self.matching: Matching = match(self.before, self.after)
        self.names: dict[str, str] = {}
        self.pair_values()

    def changes(self) -> Iterator[Change]:
        yield from attribute_changes(
            self.where, "graph", self.before.graph.attributes, self.after.graph.attributes
        )
        yield from self.boundary("inputs", self.before.graph.inputs, self.after.graph.inputs)
        yield from self.boundary("outputs", self.before.graph.outputs, self.after.graph.outputs)
        for one, other in sorted(self.matching.forth.items()):
            yield from self.operators(one, other)
        yield from self.unmatched()
        yield from self.values()
        yield from self.order()

    def pair_values(self) -> None:
        """Pair results of matched operators, then graph inputs, then inputs of operators, then the rest by name."""
        pairs = [*sorted(self.matching.forth.items()), *self.matching.replaced]
        for one, other in pairs:
            self.names.update(zip(self.before.outputs(one), self.after.outputs(other), strict=False))
        taken = set(self.names.values())
        leaves = list(zip(self.before.graph.inputs, self.after.graph.inputs, strict=False))
        for one, other in pairs:
            ours, theirs = self.before.operators[one].inputs, self.after.operators[other].inputs
            leaves += [(left[1], right[1]) for left, right in zip(ours, theirs, strict=False)]
        leaves += [(name, name) for name in self.before.graph.values]
        for left, right in leaves:
            if left not in self.names and right not in taken and self.may_be_same(left, right):
                self.names[left] = right
                taken.add(right)

    def may_be_same(self, ours: str, theirs: str) -> bool:
        """Return whether two leaves of the graphs are of one kind: inputs, constants or others."""
        before, after = self.before.value(ours), self.after.value(theirs)
        if before is None or after is None or ours in self.before.producer or theirs in self.after.producer:
            return False
        if self.before.input_index.get(ours) != self.after.input_index.get(theirs):
            return False
        return (before.contents is None) == (after.contents is None)

    def boundary(self, which: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
        renamed = [self.names.get(name, name) for name in before]
        if renamed != list(after):
            order_only = sorted(renamed) == sorted(after)
            yield BoundaryChanged(self.where, which, tuple(before), tuple(after), order_only)

    def operators(self, one: int, other: int) -> Iterator[Change]:
        ours, theirs = self.before.operators[one], self.after.operators[other]
        label = self.after.label(other)
        for change in attribute_changes(self.where, label, ours.attributes, theirs.attributes):
            renamed = change.name in NAMES_OF_GRAPHS and self.regions.get(change.before) == change.after
            if change.name not in NUMBERING and not renamed:
                yield change
        if len(ours.inputs) != len(theirs.inputs):
            yield AttributeChanged(
                self.where, label, "number of inputs", str(len(ours.inputs)), str(len(theirs.inputs))
            )
        for (role, name), (_, found) in zip(ours.inputs, theirs.inputs, strict=False):
            expected = self.names.get(name, name)
            if expected != found and not self.is_explained(name, found):
                yield EdgeRewired(self.where, label, role, expected, found)
        if len(ours.outputs) != len(theirs.outputs):
            yield AttributeChanged(
                self.where, label, "number of outputs", str(len(ours.outputs)), str(len(theirs.outputs))
            )

    def is_explained(self, name: str, found: str) -> bool:
        """Return whether an added or removed operator on the edge is all that changed in it."""
        added = self.after.producer.get(found)
        if added is not None and added[0] not in self.matching.back:
            through = {operand for _, operand in self.after.operators[added[0]].inputs}
            if self.names.get(name, name) in through:
                return True
        removed = self.before.producer.get(name)
        if removed is not None and removed[0] not in self.matching.forth:
            through = {self.names.get(at, at) for _, at in self.before.operators[removed[0]].inputs}
            return found in through
        return False

    def unmatched(self) -> Iterator[Change]:
        for one, other in self.matching.replaced:
            yield OperatorReplaced(self.where, self.before.label(one), self.after.label(other))
        gone = {one for one, _ in self.matching.replaced} | self.matching.forth.keys()
        for at, operator in enumerate(self.before.operators):
            if at not in gone:
                names = tuple(name for _, name in operator.inputs)
                yield OperatorRemoved(self.where, self.before.label(at), names)
        new = {other for _, other in self.matching.replaced} | self.matching.back.keys()
        for at, operator in enumerate(self.after.operators):
            if at not in new:
                names = tuple(name for _, name in operator.inputs)
                yield OperatorAdded(self.where, self.after.label(at), names)

    def values(self) -> Iterator[Change]:
        for ours, theirs in self.names.items():
            yield from self.value(ours, theirs)
        yield from self.values_of_one_side()
        renamed = [(ours, theirs) for ours, theirs in self.names.items() if ours != theirs]
        if renamed:
            yield Renamed(self.where, len(renamed), tuple(renamed[:EXAMPLES]))

    def value(self, ours: str, theirs: str) -> Iterator[Change]:
        """Yield the changes of a value that both graphs have."""
        before, after = self.before.value(ours), self.after.value(theirs)
        if before is None or after is None:
            if before is not after:
                shown = (ABSENT if value is None else value.type for value in (before, after))
                yield PartChanged(self.where, f"value {theirs}", *shown)
            return
        for change in attribute_changes(self.where, theirs, before.attributes, after.attributes):
            same_data = change.name.endswith(MISSING) and change.before[DIGEST] == change.after[DIGEST]
            if change.name not in NUMBERING and not same_data:
                yield change
        yield from content_changes(self.where, theirs, before, after)

    def values_of_one_side(self) -> Iterator[Change]:
        """Yield the values that only one of the graphs has, but for those of operators that only it has."""
        taken = set(self.names.values())
        for name, value in self.before.graph.values.items():
            if name not in self.names and not self.goes_with(self.before, name, self.matching.forth):
                yield PartChanged(self.where, f"value {name}", value.type, ABSENT)
        for name, value in self.after.graph.values.items():
            if name not in taken and not self.goes_with(self.after, name, self.matching.back):
                yield PartChanged(self.where, f"value {name}", ABSENT, value.type)

    @staticmethod
    def goes_with(side: GraphSide, name: str, matched: Mapping[int, int]) -> bool:
        """Return whether a value belongs to operators that are reported as added or removed."""
        touching = [at for at, _ in side.consumers.get(name, ())]
        if name in side.producer:
            touching.append(side.producer[name][0])
        return any(at not in matched for at in touching)

    def order(self) -> Iterator[Change]:
        sequence = [
            self.matching.forth[at] for at in range(len(self.before.operators)) if at in self.matching.forth
        ]
        moved = tuple(self.after.label(at) for at in _out_of_order(sequence))
        if moved:
            yield Reordered(self.where, "operators", moved, len(self.after.operators))
        place = {name: at for at, name in enumerate(self.after.graph.values)}
        kept = [self.names[name] for name in self.before.graph.values if name in self.names]
        names = list(place)
        shuffled = tuple(names[at] for at in _out_of_order([place[name] for name in kept if name in place]))
        if shuffled:
            yield Reordered(self.where, "values", shuffled, len(names))


def _out_of_order(sequence: Sequence[int]) -> list[int]:
    """Return the fewest numbers without which the others ascend.

    >>> _out_of_order([0, 3, 1, 2])
    [3]
    """
    tails: list[int] = []
    tail_at: list[int] = []
    previous = [-1] * len(sequence)
    for at, number in enumerate(sequence):
        length = bisect_left(tails, number)
        previous[at] = tail_at[length - 1] if length else -1
        tails[length : length + 1] = [number]
        tail_at[length : length + 1] = [at]
    kept = set()
    at = tail_at[-1] if tail_at else -1
    while at >= 0:
        kept.add(at)
        at = previous[at]
    return [number for at, number in enumerate(sequence) if at not in kept]
