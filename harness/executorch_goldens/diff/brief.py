"""The short form of a payload: its operators, a line each, and its constants after them."""

from __future__ import annotations

from collections.abc import Iterator

from executorch_goldens.diff.side import GraphSide
from executorch_goldens.goldens.outline import Outline, OutlineGraph, OutlineValue

#: An operand that is not there, see `executorch_goldens.goldens.outline.OutlineOperator`.
ABSENT_OPERAND = "none"
#: Facts of a constant's contents that a line has room for.
FACTS = ("values", "min", "max", "distinct")
#: Values of a constant that a line lists.
MOST_VALUES = 8


def brief(read: Outline) -> Iterator[str]:
    """Yield the lines of the short form of a payload."""
    yield f"{read.kind} {read.size} bytes"
    for graph in read.graphs:
        yield f"graph {graph.name}"
        yield from (f"  {line}" for line in _operators(graph))
    for delegate in read.delegates:
        yield f"delegate {delegate.name} {delegate.backend}"
        if delegate.inner is not None:
            yield from (f"  {line}" for line in brief(delegate.inner))
    constants = [value for graph in read.graphs for value in graph.values.values() if value.contents]
    if constants or read.blobs:
        yield "constants"
        yield from (f"  {_constant(value)}" for value in (*constants, *read.blobs.values()))


def _operators(graph: OutlineGraph) -> Iterator[str]:
    """Yield the operators that compute: one that only holds a constant is among the constants."""
    side = GraphSide(graph)
    for at, operator in enumerate(graph.operators):
        made = side.outputs(at)
        if not operator.inputs and all(name in graph.values and graph.values[name].contents for name in made):
            continue
        read = [name for _, name in operator.inputs if name not in (*made, ABSENT_OPERAND)]
        outputs = ", ".join(
            f"{name}: {graph.values[name].type}" if name in graph.values else name for name in made
        )
        call = f"{operator.type}({', '.join(read)})"
        yield f"{outputs} = {call}" if outputs else call


def _constant(value: OutlineValue) -> str:
    facts = value.contents.facts if value.contents is not None else {}
    shown = [f"{name} {_shortened(facts[name])}" for name in FACTS if name in facts]
    return f"{value.name}: {value.type}" + (f", {', '.join(shown)}" if shown else "")


def _shortened(text: str) -> str:
    words = text.split()
    return text if len(words) <= MOST_VALUES else " ".join([*words[:MOST_VALUES], "…"])
