"""Compares two outlines and reports every difference between them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.decode import Decoded
from harness.decode.difference import TensorDifference, tensor_difference
from harness.structure.changes import (
    AttributeChanged,
    BoundaryChanged,
    Change,
    ConstantChanged,
    EdgeRewired,
    LayoutChanged,
    OperatorAdded,
    OperatorRemoved,
    OperatorReplaced,
    PartChanged,
    Renamed,
    Reordered,
)
from harness.structure.matching import NUMBERING, Matching, Side, match
from harness.structure.outline import Contents, Outline, OutlineDelegate, OutlineGraph, OutlineValue, outline

#: Names shown of many.
EXAMPLES = 3
#: Facts that say where things stand in the payload and how large it is, by the beginning of their names. They
#: follow from lengths of names and from everything else.
LAYOUT = (
    "size",
    "header.",
    "flatbuffer_",
    "constant_data_",
    "segments[",
    "constant_segment.offsets",
    "processed.index",
)
#: Facts that are keys of data, by the end of their names. The data are compared where they are used.
KEYS = frozenset({"key", "named_key"})
#: Numbers that nothing is found by: another one, with all else the same, changes nothing. Inputs and outputs are in the
#: order of their external ids already.
LABELS = frozenset({"debug_handle", "external_id"})
#: The attribute that stands for a constant that is not at hand. Its key ends in the SHA-256 of the constant
#: (``get_serialized_buffer_index`` in ExecuTorch's ``backends/xnnpack/operators/node_visitor.py``).
MISSING = "constant_data.missing"
DIGEST = slice(-64, None)
#: TOSA's control flow names the regions to run.
NAMES_OF_GRAPHS = frozenset({"then_graph", "else_graph", "cond_graph", "body_graph"})
ABSENT = "absent"


@dataclass(frozen=True)
class Report:
    """Every difference between two payloads.

    Attributes
    ----------
    changes
        Those of content first.
    """

    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """Whether there is no difference at all."""
        return not self.changes

    @property
    def order_only(self) -> bool:
        """Whether only names, numbering, order and layout differ, and nothing that is computed."""
        return bool(self.changes) and not any(change.content for change in self.changes)

    @property
    def verdict(self) -> str:
        """What it comes to: ``same``, ``renamed only``, ``order only``, ``layout only``, ``different``..."""
        if self.same:
            return "same"
        if not self.order_only:
            return "different"
        renamed = any(isinstance(change, Renamed) for change in self.changes)
        reordered = any(isinstance(change, Reordered) for change in self.changes)
        if renamed and reordered:
            return "renamed and reordered"
        return "renamed only" if renamed else "order only" if reordered else "layout only"

    def lines(self, limit: int | None = None) -> Iterator[str]:
        """Yield the report: the verdict, then each difference.

        Parameters
        ----------
        limit
            How many differences to write out; None for all.
        """
        yield self.verdict
        many = len({change.where for change in self.changes}) > 1
        for change in self.changes[:limit]:
            first, *rest = change.lines()
            yield f"  {change.where}: {first}" if many and change.where else f"  {first}"
            yield from (f"  {line}" for line in rest)
        if limit is not None and len(self.changes) > limit:
            yield f"  and {len(self.changes) - limit} more"


def compare(before: Decoded | str, after: Decoded | str) -> Report:
    """Compare two payloads, two texts of goldens, or one with the other.

    Raises
    ------
    OutlineError
        If a text is not what `Decoded.text` writes.
    """
    changes = list(_outlines(outline(before), outline(after), ""))
    if not changes:
        changes += _unexplained(_text(before), _text(after))
    return Report(tuple(sorted(changes, key=lambda change: not change.content)))


def _text(source: Decoded | str) -> str:
    return source if isinstance(source, str) else source.text()


def _unexplained(before: str, after: str) -> Iterator[Change]:
    """Yield what texts differ in whose graphs do not: labels alone are layout, anything else is content."""
    lines = before.splitlines(), after.splitlines()
    pairs = [(ours.strip(), theirs.strip()) for ours, theirs in zip(*lines, strict=False) if ours != theirs]
    numbers = []
    for ours, theirs in pairs:
        (name, _, old), (other, _, new) = ours.partition(" = "), theirs.partition(" = ")
        if name == other and name in LABELS:
            numbers.append((name, old, new))
    if pairs and len(numbers) < len(pairs):
        yield PartChanged("", "text", *pairs[0])
    elif len(lines[0]) != len(lines[1]):
        yield PartChanged("", "text", *(f"{len(text)} characters" for text in (before, after)))
    elif numbers:
        yield LayoutChanged("", len(numbers), tuple(numbers[:EXAMPLES]))


def _outlines(before: Outline, after: Outline, where: str) -> Iterator[Change]:
    if before.kind != after.kind:
        yield PartChanged(where, "kind", before.kind, after.kind)
        return
    layout: list[tuple[str, str, str]] = []
    keys: list[tuple[str, str]] = []
    if before.size != after.size:
        layout.append(("bytes", before.size, after.size))
    for change in _attributes(where, "payload", before.facts, after.facts):
        last = change.name.rpartition(".")[2]
        if change.name.startswith(LAYOUT) or last == "offset":
            layout.append((change.name, change.before, change.after))
        elif last in KEYS and ABSENT not in (change.before, change.after):
            keys.append((change.before, change.after))
        else:
            yield change
    yield from _blobs(before.blobs, after.blobs, where)
    regions = _graph_pairs(before.graphs, after.graphs)
    names = {ours.name.split("/")[0]: theirs.name.split("/")[0] for ours, theirs in regions}
    for ours, theirs in regions:
        yield from _graphs(ours, theirs, f"{where} {ours.name}".lstrip(), names)
    for left in before.graphs[len(regions) :]:
        yield PartChanged(where, f"graph {left.name}", "there", ABSENT)
    for new in after.graphs[len(regions) :]:
        yield PartChanged(where, f"graph {new.name}", ABSENT, "there")
    for at in range(max(len(before.delegates), len(after.delegates))):
        yield from _delegates(before.delegates[at : at + 1], after.delegates[at : at + 1], where, layout)
    if before.unread != after.unread:
        shown = [", ".join(unread) or "none" for unread in (before.unread, after.unread)]
        yield PartChanged(where, "bytes that nothing refers to", shown[0], shown[1])
    if keys:
        yield Renamed(where, len(keys), tuple(keys[:EXAMPLES]))
    if layout:
        yield LayoutChanged(where, len(layout), tuple(layout[:EXAMPLES]))


def _graph_pairs(
    before: Sequence[OutlineGraph], after: Sequence[OutlineGraph]
) -> list[tuple[OutlineGraph, OutlineGraph]]:
    """Pair graphs of the same name, or else in order."""
    by_name = {graph.name: graph for graph in after}
    if [graph.name for graph in before] != list(by_name) and {graph.name for graph in before} == set(by_name):
        return [(graph, by_name[graph.name]) for graph in before]
    return list(zip(before, after, strict=False))


def _blobs(
    before: Mapping[str, OutlineValue], after: Mapping[str, OutlineValue], where: str
) -> Iterator[Change]:
    # What has only got another key is the same, and its key is a fact of the payload.
    held = {value.contents.sha256 for value in after.values() if value.contents}
    kept = {value.contents.sha256 for value in before.values() if value.contents} & held
    for name in dict.fromkeys([*before, *after]):
        ours, theirs = before.get(name), after.get(name)
        only = ours or theirs
        if (ours is None or theirs is None) and only and only.contents and only.contents.sha256 in kept:
            continue
        if ours is None or theirs is None:
            yield PartChanged(
                where, f"data {name}", *(ABSENT if one is None else one.type for one in (ours, theirs))
            )
        else:
            yield from _contents(where, f"data {name}", ours, theirs)


def _delegates(
    before: Sequence[OutlineDelegate],
    after: Sequence[OutlineDelegate],
    where: str,
    layout: list[tuple[str, str, str]],
) -> Iterator[Change]:
    if not before or not after:
        ours, theirs = (f"{side[0].name} {side[0].backend}" if side else ABSENT for side in (before, after))
        yield PartChanged(where, "delegate", ours, theirs)
        return
    one, other = before[0], after[0]
    name = f"{where} delegate {one.name}".lstrip()
    if one.backend != other.backend:
        yield AttributeChanged(where, name, "backend", one.backend, other.backend)
    for change in _attributes(where, name, one.attributes, other.attributes):
        if change.name.startswith(LAYOUT):
            layout.append((f"{name} {change.name}", change.before, change.after))
        else:
            yield change
    if one.inner is not None and other.inner is not None:
        yield from _outlines(one.inner, other.inner, name)


def _attributes(
    where: str, owner: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[AttributeChanged]:
    for name in dict.fromkeys([*before, *after]):
        ours, theirs = before.get(name, ABSENT), after.get(name, ABSENT)
        if ours != theirs:
            yield AttributeChanged(where, owner, name, ours, theirs)


def _contents(where: str, owner: str, before: OutlineValue, after: OutlineValue) -> Iterator[Change]:
    """Compare what two values hold, and their types."""
    ours, theirs = before.contents, after.contents
    if ours is None or theirs is None:
        if before.type != after.type:
            yield AttributeChanged(where, owner, "type", before.type, after.type)
        if (ours is None) != (theirs is None):
            shown = [ABSENT if held is None else f"sha256 {held.sha256}" for held in (ours, theirs)]
            yield PartChanged(where, f"contents of {owner}", shown[0], shown[1])
    elif before.type != after.type or ours.sha256 != theirs.sha256:
        yield _constant(where, owner, before, after, ours, theirs)


def _constant(
    where: str, owner: str, before: OutlineValue, after: OutlineValue, ours: Contents, theirs: Contents
) -> ConstantChanged:
    difference = None
    if ours.constant is not None and theirs.constant is not None:
        difference = tensor_difference(ours.constant, theirs.constant)
    elif before.type == after.type:
        difference = _recorded_difference(before.type, ours, theirs)
    if difference is not None:
        return ConstantChanged(where, owner, difference)
    facts = [("type", before.type, after.type)]
    facts += [
        (name, ours.facts.get(name, ABSENT), theirs.facts.get(name, ABSENT))
        for name in dict.fromkeys([*ours.facts, *theirs.facts])
    ]
    return ConstantChanged(where, owner, None, tuple(fact for fact in facts if fact[1] != fact[2]))


def _recorded_difference(type_: str, before: Contents, after: Contents) -> TensorDifference | None:
    """Return the difference of two constants that a golden has written out; None for larger ones."""
    if "values" not in before.facts or "values" not in after.facts:
        return None
    dtype, _, lengths = type_.rpartition("[")
    shape = tuple(int(length) for length in lengths[:-1].split(",") if length)
    ours, theirs = before.facts["values"].split(), after.facts["values"].split()
    at = [index for index, (left, right) in enumerate(zip(ours, theirs, strict=False)) if left != right]
    gaps = [abs(_number(ours[index]) - _number(theirs[index])) for index in at]
    gaps = [gap for gap in gaps if math.isfinite(gap)]
    return TensorDifference(
        dtypes=(dtype, dtype),
        shapes=(shape, shape),
        differing=len(at),
        size=len(ours),
        largest=max(gaps) if gaps else None,
        mean=sum(gaps) / len(ours) if gaps else None,
        first=tuple((_index(index, shape), ours[index], theirs[index]) for index in at[:EXAMPLES]),
    )


def _number(text: str) -> float:
    """Return a number as the text form writes it; ``nan:`` is followed by bits."""
    if text in ("true", "false"):
        return float(text == "true")
    return math.nan if text.startswith("nan") else float(text)


def _index(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the index of an element in row-major order.

    >>> _index(5, (2, 3))
    (1, 2)
    """
    index = []
    for length in reversed(shape):
        flat, place = divmod(flat, length)
        index.append(place)
    return tuple(reversed(index))


def _graphs(
    before: OutlineGraph, after: OutlineGraph, where: str, regions: Mapping[str, str]
) -> Iterator[Change]:
    changes = list(_Graphs(before, after, where, regions).changes())
    turned = _turned(before, after, changes)
    if turned is not None:
        others = list(_Graphs(before, turned, where, regions).changes())
        if not any(isinstance(change, EdgeRewired) for change in others):
            changes = [
                BoundaryChanged(where, "inputs", before.inputs, after.inputs, order_only=True),
                *others,
            ]
    yield from changes


def _turned(before: OutlineGraph, after: OutlineGraph, changes: Sequence[Change]) -> OutlineGraph | None:
    """Return `after` with its inputs in the order of those of `before`, if that is what the rewired edges come to.

    Inputs are the same by their places. Where all names have kept these, operators read others: no inputs moved.
    """
    moved = {change.before: change.after for change in changes if isinstance(change, EdgeRewired)}
    places = {name: at for at, name in enumerate(after.inputs)}
    if not moved or set(moved) != set(moved.values()) or not set(moved) <= set(places):
        return None
    if len(before.inputs) != len(places) or all(before.inputs[places[name]] == name for name in moved):
        return None
    return replace(after, inputs=tuple(moved.get(name, name) for name in after.inputs))


class _Graphs:
    """The comparison of two graphs.

    Attributes
    ----------
    names
        Value of the one graph to the value of the other, as far as matched operators tell.
    """

    def __init__(
        self, before: OutlineGraph, after: OutlineGraph, where: str, regions: Mapping[str, str]
    ) -> None:
        self.before, self.after, self.where, self.regions = Side(before), Side(after), where, regions
        self.matching: Matching = match(self.before, self.after)
        self.names: dict[str, str] = {}

    def changes(self) -> Iterator[Change]:
        self.pair_values()
        yield from _attributes(self.where, "graph", self.before.graph.attributes, self.after.graph.attributes)
        yield from self.boundary("inputs", self.before.graph.inputs, self.after.graph.inputs)
        yield from self.boundary("outputs", self.before.graph.outputs, self.after.graph.outputs)
        for one, other in sorted(self.matching.forth.items()):
            yield from self.operators(one, other)
        yield from self.unmatched()
        yield from self.values()
        yield from self.order()

    def pair_values(self) -> None:
        """Pair what matched operators make, graph inputs, what the operators read, and the rest by name."""
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
        """Tell whether two leaves of the graphs are of one kind: inputs, constants or others."""
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
        for change in _attributes(self.where, label, ours.attributes, theirs.attributes):
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
        """Tell whether an operator that came or went stands in the edge, and nothing else changed in it."""
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
        gone = {one for one, _ in self.matching.replaced}
        new = {other for _, other in self.matching.replaced}
        for at, operator in enumerate(self.before.operators):
            if at not in self.matching.forth and at not in gone:
                names = tuple(name for _, name in operator.inputs)
                yield OperatorRemoved(self.where, self.before.label(at), names)
        for at, operator in enumerate(self.after.operators):
            if at not in self.matching.back and at not in new:
                names = tuple(name for _, name in operator.inputs)
                yield OperatorAdded(self.where, self.after.label(at), names)

    def values(self) -> Iterator[Change]:
        renamed: list[tuple[str, str]] = []
        for ours, theirs in self.names.items():
            before, after = self.before.value(ours), self.after.value(theirs)
            if ours != theirs:
                renamed.append((ours, theirs))
            if before is None or after is None:
                if before is not after:
                    yield PartChanged(self.where, f"value {theirs}", *map(_type_or_absent, (before, after)))
                continue
            for change in _attributes(self.where, theirs, before.attributes, after.attributes):
                same_data = change.name.endswith(MISSING) and change.before[DIGEST] == change.after[DIGEST]
                if change.name not in NUMBERING and not same_data:
                    yield change
            yield from _contents(self.where, theirs, before, after)
        taken = set(self.names.values())
        for name, value in self.before.graph.values.items():
            if name not in self.names and not self.goes_with(self.before, name, self.matching.forth):
                yield PartChanged(self.where, f"value {name}", value.type, ABSENT)
        for name, value in self.after.graph.values.items():
            if name not in taken and not self.goes_with(self.after, name, self.matching.back):
                yield PartChanged(self.where, f"value {name}", ABSENT, value.type)
        if renamed:
            yield Renamed(self.where, len(renamed), tuple(renamed[:EXAMPLES]))

    @staticmethod
    def goes_with(side: Side, name: str, matched: Mapping[int, int]) -> bool:
        """Tell whether a value belongs to operators that are reported as added or removed."""
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


def _type_or_absent(value: OutlineValue | None) -> str:
    return ABSENT if value is None else value.type


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
