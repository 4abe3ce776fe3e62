"""Keys of operators: their inputs' computation, and their users. Operators with equal keys may be the same.

Every key comes in two grades. A detailed key counts attributes, types and contents of constants; a plain key counts
only the types of operators and the edges between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from executorch_goldens.structure.outline import OutlineValue
from executorch_goldens.structure.side import Side, described

#: Description of a computation to its number, the same in both graphs. A number replaces the whole description in
#: those that build on it, which would otherwise grow with the depth of the graph.
Numbers = dict[Hashable, int]


@dataclass(frozen=True)
class Keys:
    """A key for each operator of the two graphs, in the order of the operators."""

    before: Sequence[Hashable]
    after: Sequence[Hashable]


def by_inputs(before: Side, after: Side, detailed: bool) -> Keys:
    """Return keys that are equal if operators compute the same from the same inputs of the graph."""
    numbers: Numbers = {}
    return Keys(_by_inputs(before, numbers, detailed), _by_inputs(after, numbers, detailed))


def by_uses(before: Side, after: Side, detailed: bool) -> Keys:
    """Return keys that are equal if operators are used in the same way, down to the outputs of the graph."""
    numbers: Numbers = {}
    return Keys(_by_uses(before, numbers, detailed), _by_uses(after, numbers, detailed))


def by_both(one: Keys, other: Keys) -> Keys:
    """Return keys that are equal if both are."""
    return Keys(
        list(zip(one.before, other.before, strict=True)), list(zip(one.after, other.after, strict=True))
    )


def _by_inputs(side: Side, numbers: Numbers, detailed: bool) -> list[int]:
    keys: list[int] = []
    for at, operator in enumerate(side.operators):
        operands = tuple(_operand(side, at, name, keys, detailed) for _, name in operator.inputs)
        key = (operator.type, _detail(side, at) if detailed else None, operands)
        keys.append(numbers.setdefault(key, len(numbers)))
    return keys


def _operand(side: Side, at: int, name: str, keys: Sequence[int], detailed: bool) -> Hashable:
    """Describe an operand of operator `at`, given the keys of the operators before it."""
    made = side.producer.get(name)
    if made is not None:
        maker, port = made
        # The key of an operator that comes later is not known yet.
        return ("made", keys[maker] if maker < at else None, port)
    if name in side.input_index:
        return ("input", side.input_index[name])
    value = side.value(name)
    if value is None:
        return ("unknown", name if name == "none" else None)
    return ("leaf", *_described_value(value)) if detailed else ("leaf", value.contents is not None)


def _by_uses(side: Side, numbers: Numbers, detailed: bool) -> list[int]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(side.graph.outputs):
        places[name].append(place)
    keys = [0] * len(side.operators)
    for at in reversed(range(len(side.operators))):
        uses = tuple(
            (
                tuple(places[name]),
                tuple(sorted((keys[user], position) for user, position in side.consumers[name])),
            )
            for name in side.outputs(at)
        )
        key = (side.operators[at].type, _detail(side, at) if detailed else None, uses)
        keys[at] = numbers.setdefault(key, len(numbers))
    return keys


def _detail(side: Side, at: int) -> Hashable:
    """Describe an operator's attributes and outputs."""
    results = [side.value(name) for name in side.outputs(at)]
    return (
        described(side.operators[at].attributes),
        tuple(_described_value(value) for value in results if value is not None),
    )


def _described_value(value: OutlineValue) -> tuple[Hashable, ...]:
    return (value.type, described(value.attributes), value.contents and value.contents.sha256)
