"""Sets the operators of two graphs side by side, under the names of the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.side import GraphSide
from executorch_goldens.goldens.outline import OutlineGraph, described

#: States of an operator against the same one of the other artifact.
SAME, CHANGED, REPLACED, ADDED, REMOVED = "same", "changed", "replaced", "added", "removed"
#: Numbers of a constant that its line has; a longer one has its digest.
SHOWN_NUMBERS = 16


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


def rows(pair: Pairing) -> Iterator[Row]:
    """Yield the operators in the new order, deleted ones before their old successors."""
    back = pair.matching.back | {other: one for one, other in pair.matching.replaced}
    gone = [at for at in range(len(pair.before.operators)) if at not in back.values()]
    for at, _ in enumerate(pair.after.operators):
        was = back.get(at)
        while was is not None and gone and gone[0] < was:
            yield _removed(pair, gone.pop(0))
        label, now = pair.after.label(at), lines(pair.after, at, {})
        if was is None:
            yield Row(ADDED, label, after=now, at=at)
            continue
        old = lines(pair.before, was, pair.names)
        state = REPLACED if was not in pair.matching.forth else SAME if old == now else CHANGED
        yield Row(state, label, old, now, frozenset({*old} ^ {*now}), was, at)
    for at in gone:
        yield _removed(pair, at)


def _removed(pair: Pairing, at: int) -> Row:
    return Row(REMOVED, pair.before.label(at), before=lines(pair.before, at, pair.names), was=at)


def lines(side: GraphSide, at: int, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the lines of an operator: its type and outputs, inputs, attributes. Values have other names by `names`."""
    operator = side.operators[at]
    found = [operator.type]
    found += [f"→ {names.get(name, name)}: {_held(side.graph, name)}" for name in side.outputs(at)]
    found += [
        f"{role} {names.get(name, name)}" for role, name in operator.inputs if name not in side.outputs(at)
    ]
    found += [f"{name} = {value}" for name, value in described(operator.attributes)]
    return tuple(found)


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
