"""Finds out which operator of one graph is which of another, whatever they are called and wherever they
stand.

Operators are the same if they compute the same from the same inputs (hash of everything before them) and are
used in the same way (hash of everything behind them). What such hashes cannot decide, because something
before or behind has changed, is decided by the neighbours that are already matched, and in the end by type
and order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from harness.structure.outline import OutlineGraph, OutlineOperator, OutlineValue

#: Attributes that number other things in the payload: they change when anything before them does, and are
#: compared through what they refer to.
NUMBERING = frozenset(
    {
        "constant_data",
        "quantization.scale_buffer_idx",
        "external_id",
        "data_buffer_idx",
        "delegate_index",
        "op_index",
        "debug_handle",
    }
)
#: The role of operands that an instruction of a ``.pte`` may read or write.
EITHER_WAY = "arg"

#: Stands for whatever a key says, the same number for the same key in both graphs.
Ids = dict[Any, int]


def described(attributes: dict[str, str] | Any) -> tuple[tuple[str, str], ...]:
    """Return the attributes that describe, without those that only number."""
    return tuple((name, value) for name, value in attributes.items() if name not in NUMBERING)


class Side:
    """One of the two graphs, with its edges.

    Attributes
    ----------
    producer
        Name of a value to (operator, output port).
    consumers
        Name of a value to (operator, input position), in order.
    """

    def __init__(self, graph: OutlineGraph) -> None:
        self.graph = graph
        self.operators = graph.operators
        self.producer: dict[str, tuple[int, int]] = {}
        self.consumers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, operator in enumerate(graph.operators):
            for port, name in enumerate(self.outputs(at)):
                self.producer.setdefault(name, (at, port))
            for position, (_, name) in enumerate(operator.inputs):
                if self.producer.get(name, (None, 0))[0] != at:
                    self.consumers[name].append((at, position))
        self.input_index = {name: at for at, name in enumerate(graph.inputs)}

    def outputs(self, at: int) -> tuple[str, ...]:
        """Return the names of what an operator makes."""
        operator = self.operators[at]
        if operator.outputs:
            return tuple(name for _, name in operator.outputs)
        return tuple(name for role, name in operator.inputs if self.is_made_by(at, role, name))

    def is_made_by(self, at: int, role: str, name: str) -> bool:
        """Tell whether an instruction writes an operand: the first to touch what is not there before must."""
        value = self.graph.values.get(name)
        if role != EITHER_WAY or value is None or "[" not in value.type or value.contents is not None:
            return False
        if name in self.graph.inputs or value.attributes.get("location") == "EXTERNAL":
            return False
        return self.producer.get(name, (at, 0))[0] == at

    def operand(self, at: int, position: int) -> tuple[int, int] | None:
        """Return the operator and port an input comes from; None for a leaf of the graph."""
        found = self.producer.get(self.operators[at].inputs[position][1])
        return None if found is None or found[0] == at else found

    def label(self, at: int) -> str:
        """Return what to call an operator: its type and its first output."""
        outputs = self.outputs(at)
        return f"{self.operators[at].type} {outputs[0]}" if outputs else self.operators[at].type

    def value(self, name: str) -> OutlineValue | None:
        """Return a value by name, if the graph describes it."""
        return self.graph.values.get(name)


@dataclass
class Matching:
    """Which operators are the same.

    Attributes
    ----------
    forth, back
        Operator of the one graph to the operator of the other, both ways.
    replaced
        Operators of different types in the same place.
    """

    forth: dict[int, int] = field(default_factory=dict)
    back: dict[int, int] = field(default_factory=dict)
    replaced: list[tuple[int, int]] = field(default_factory=list)

    def add(self, before: int, after: int) -> None:
        """Match two operators."""
        self.forth[before] = after
        self.back[after] = before


def match(before: Side, after: Side) -> Matching:
    """Match the operators of two graphs."""
    matching = Matching()
    ids: Ids = {}
    forward, backward, plain_forward, plain_backward = (
        (hashes(before, ids, detailed), hashes(after, ids, detailed))
        for detailed in (True, False)
        for hashes in (_forward, _backward)
    )
    both = (_pairs(forward[0], backward[0]), _pairs(forward[1], backward[1]))
    plain_both = (_pairs(plain_forward[0], plain_backward[0]), _pairs(plain_forward[1], plain_backward[1]))
    # From the surest to the vaguest. What is unmistakable by its inputs or by its uses comes before what merely
    # stands in the same place: two constants that change places have not both changed.
    _match_equal_keys(matching, *both, None)
    _match_equal_keys(matching, *forward, 1)
    _match_equal_keys(matching, *backward, 1)
    for keys in (plain_both, forward, backward, plain_forward, plain_backward):
        _match_neighbours(matching, before, after)
        _match_equal_keys(matching, *keys, None)
    _match_neighbours(matching, before, after)
    _match_in_order(matching, before, after)
    _match_replaced(matching, before, after)
    return matching


def _pairs(forward: list[int], backward: list[int]) -> list[int]:
    """Return one number for each pair of numbers."""
    return [(one << 64) | other for one, other in zip(forward, backward, strict=True)]


def _forward(side: Side, ids: Ids, detailed: bool) -> list[int]:
    """Number each operator by everything it is computed from; equal numbers for equal computations."""
    numbers: list[int] = []
    for at, operator in enumerate(side.operators):
        operands = tuple(
            _operand_key(side, at, position, numbers, detailed) for position in range(len(operator.inputs))
        )
        key = (operator.type, _detail(side, at, operator) if detailed else None, operands)
        numbers.append(ids.setdefault(key, len(ids)))
    return numbers


def _operand_key(side: Side, at: int, position: int, numbers: list[int], detailed: bool) -> Any:
    name = side.operators[at].inputs[position][1]
    made = side.producer.get(name)
    if made is not None:
        # An operator behind this one: its own number is not known yet.
        return ("made", numbers[made[0]] if made[0] < at else None, made[1])
    if name in side.input_index:
        return ("input", side.input_index[name])
    value = side.value(name)
    if value is None:
        return ("unknown", name if name == "none" else None)
    if not detailed:
        return ("leaf", value.contents is not None)
    return ("leaf", value.type, described(value.attributes), value.contents and value.contents.sha256)


def _detail(side: Side, at: int, operator: OutlineOperator) -> Any:
    results = [side.value(name) for name in side.outputs(at)]
    return (
        described(operator.attributes),
        tuple(
            (value.type, described(value.attributes), value.contents and value.contents.sha256)
            for value in results
            if value is not None
        ),
    )


def _backward(side: Side, ids: Ids, detailed: bool) -> list[int]:
    """Number each operator by everything that uses it."""
    numbers = [0] * len(side.operators)
    place: dict[str, list[int]] = defaultdict(list)
    for at, name in enumerate(side.graph.outputs):
        place[name].append(at)
    for at in reversed(range(len(side.operators))):
        operator = side.operators[at]
        uses = tuple(
            (
                tuple(place[name]),
                tuple(sorted((numbers[user], position) for user, position in side.consumers[name])),
            )
            for name in side.outputs(at)
        )
        key = ("back", operator.type, _detail(side, at, operator) if detailed else None, uses)
        numbers[at] = ids.setdefault(key, len(ids))
    return numbers


def _match_equal_keys(matching: Matching, before: list[int], after: list[int], most: int | None) -> None:
    """Match operators with the same number, in order where there are as many of them on each side.

    Parameters
    ----------
    most
        Leave alone what more operators than this have in common; None for no limit.
    """
    groups: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at, key in enumerate(before):
        if at not in matching.forth:
            groups[key][0].append(at)
    for at, key in enumerate(after):
        if at not in matching.back:
            groups[key][1].append(at)
    for ours, theirs in groups.values():
        if len(ours) == len(theirs) and (most is None or len(ours) <= most):
            for one, other in zip(ours, theirs, strict=True):
                matching.add(one, other)


def _match_neighbours(matching: Matching, before: Side, after: Side) -> None:
    """Match what feeds, and what uses, operators that are matched."""
    pending = list(matching.forth.items())
    while pending:
        one, other = pending.pop()
        for pair in (*_producers(one, other, before, after), *_users(one, other, matching, before, after)):
            if pair[0] in matching.forth or pair[1] in matching.back:
                continue
            if before.operators[pair[0]].type == after.operators[pair[1]].type:
                matching.add(*pair)
                pending.append(pair)


def _producers(one: int, other: int, before: Side, after: Side) -> Iterable[tuple[int, int]]:
    positions = min(len(before.operators[one].inputs), len(after.operators[other].inputs))
    for position in range(positions):
        ours, theirs = before.operand(one, position), after.operand(other, position)
        if ours is not None and theirs is not None and ours[1] == theirs[1]:
            yield ours[0], theirs[0]


def _users(one: int, other: int, matching: Matching, before: Side, after: Side) -> Iterable[tuple[int, int]]:
    for ours, theirs in zip(before.outputs(one), after.outputs(other), strict=False):
        left = _by_kind(before, ours, lambda at: at not in matching.forth)
        right = _by_kind(after, theirs, lambda at: at not in matching.back)
        for kind, users in left.items():
            if len(users) == len(right.get(kind, ())):
                yield from zip(users, right[kind], strict=True)


def _by_kind(side: Side, name: str, is_free: Callable[[int], bool]) -> dict[tuple[str, int], list[int]]:
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for user, position in side.consumers.get(name, ()):
        if is_free(user):
            groups[side.operators[user].type, position].append(user)
    return groups


def _match_in_order(matching: Matching, before: Side, after: Side) -> None:
    """Match what is left by type, in order."""
    ours = [at for at in range(len(before.operators)) if at not in matching.forth]
    theirs = [at for at in range(len(after.operators)) if at not in matching.back]
    blocks = SequenceMatcher(
        None,
        [before.operators[at].type for at in ours],
        [after.operators[at].type for at in theirs],
        autojunk=False,
    ).get_matching_blocks()
    for start, other_start, length in blocks:
        for step in range(length):
            matching.add(ours[start + step], theirs[other_start + step])


def _match_replaced(matching: Matching, before: Side, after: Side) -> None:
    """Pair operators of different types whose users, or whose inputs, are the same."""
    taken: set[int] = set()
    for one in range(len(before.operators)):
        if one in matching.forth:
            continue
        for other in _candidates(one, matching, before, after):
            if other not in matching.back and other not in taken:
                matching.replaced.append((one, other))
                taken.add(other)
                break


def _candidates(one: int, matching: Matching, before: Side, after: Side) -> Iterable[int]:
    """Yield operators that stand where operator `one` stood."""
    for name in before.outputs(one):
        for user, position in before.consumers.get(name, ()):
            if user in matching.forth and position < len(after.operators[matching.forth[user]].inputs):
                found = after.operand(matching.forth[user], position)
                if found is not None:
                    yield found[0]
        if name in before.graph.outputs:
            at = before.graph.outputs.index(name)
            if at < len(after.graph.outputs) and after.graph.outputs[at] in after.producer:
                yield after.producer[after.graph.outputs[at]][0]
