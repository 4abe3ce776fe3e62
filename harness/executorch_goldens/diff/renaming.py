"""Finds the names alone in which two texts differ: of nodes in a graph, of tensors in a payload.

A renaming maps each name of the text before to one name of the text after, in place: with the names mapped, the text
before has to be the text after. So order, edges, attributes and constants are the same. Names by which a program is
used are not renamed: those of the inputs and outputs of its outermost graph, and the keys of its data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from executorch_goldens.goldens.outline import (
    Outline,
    OutlineGraph,
    OutlineOperator,
)

#: Names before and after, of those that differ, in the order of the text.
Renames = tuple[tuple[str, str], ...]

#: Facts of a payload that follow from the lengths of names in it.
FOLLOWING = re.compile(r"header\..*|flatbuffer_.*|constant_data_offset")
#: The lines of a graph's text (``str`` of a `torch.fx.Graph`): its head, what it defines, and what it returns.
_HEAD = "graph("
_DEFINED = re.compile(r"    %(\w+) :.*? = (\w+)\[target=")
_RETURNED = re.compile(r"    return\b")
_USED = re.compile(r"%(\w+)")
_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"(?<= = placeholder\[target=)\w+(?=\])")


def renamed_values(one: Outline, other: Outline) -> Renames | None:
    """Return the names in which two payloads differ; None if anything else differs."""
    if len(one.graphs) != len(other.graphs):
        return None
    found: list[tuple[str, str]] = []
    graphs = []
    for at, (ours, theirs) in enumerate(zip(one.graphs, other.graphs, strict=True)):
        kept = (*ours.inputs, *ours.outputs) if at == 0 else ()
        operands = {name for operator in ours.operators for _, name in (*operator.inputs, *operator.outputs)}
        names = _bijection(list(ours.values), list(theirs.values), kept, operands)
        if names is None:
            return None
        graphs.append(_with_names(ours, names))
        found += names.items()
    if _without_sizes(replace(one, graphs=tuple(graphs))) != _without_sizes(other):
        return None
    return _differing(found)


def renamed_nodes(before: str, after: str) -> Renames | None:
    """Return the names of nodes in which the texts of two programs' graphs differ; None if anything else differs."""
    ours, theirs = _scopes(before), _scopes(after)
    if len(ours) != len(theirs):
        return None
    found: list[tuple[str, str]] = []
    for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        kept = _boundary(one) if at == 0 else ()
        names = _bijection(_defined(one), _defined(other), kept, _mentioned(one))
        if names is None or [_line_with_names(line, names) for line in one] != other:
            return None
        found += names.items()
    return _differing(found)


def _bijection(
    before: Sequence[str], after: Sequence[str], kept: Iterable[str], used: Iterable[str]
) -> dict[str, str] | None:
    """Map names to those in the same places; None where it is no bijection, or one that has to be `kept` is not.

    Parameters
    ----------
    used
        Names that the text before uses. One that it does not define must not be taken for one that `after` does.
    """
    names = dict(zip(before, after, strict=False))
    if not len(before) == len(after) == len(names) == len(set(after)):
        return None
    if any(names.get(name, name) != name for name in kept):
        return None
    return None if any(name not in names for name in {*used} & {*after}) else names


def _differing(names: Iterable[tuple[str, str]]) -> Renames:
    return tuple(dict.fromkeys(pair for pair in names if pair[0] != pair[1]))


# Payloads


def _with_names(graph: OutlineGraph, names: Mapping[str, str]) -> OutlineGraph:
    return replace(
        graph,
        inputs=tuple(names.get(name, name) for name in graph.inputs),
        outputs=tuple(names.get(name, name) for name in graph.outputs),
        values={names[name]: replace(value, name=names[name]) for name, value in graph.values.items()},
        operators=tuple(_operator_with_names(operator, names) for operator in graph.operators),
    )


def _operator_with_names(operator: OutlineOperator, names: Mapping[str, str]) -> OutlineOperator:
    return replace(
        operator,
        inputs=tuple((role, names.get(name, name)) for role, name in operator.inputs),
        outputs=tuple((role, names.get(name, name)) for role, name in operator.outputs),
    )


def _without_sizes(payload: Outline) -> Outline:
    return replace(
        payload,
        size="",
        facts={name: "" if FOLLOWING.fullmatch(name) else value for name, value in payload.facts.items()},
    )


# Graphs


def _scopes(text: str) -> list[list[str]]:
    """Return the lines of each graph: that of the program first, then those of its submodules."""
    scopes: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith(_HEAD) and scopes[-1]:
            scopes.append([])
        scopes[-1].append(line)
    return scopes


def _defined(lines: Iterable[str]) -> list[str]:
    return [found[1] for line in lines if (found := _DEFINED.match(line))]


def _mentioned(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from (_WORD if _RETURNED.match(line) else _USED).findall(line)


def _boundary(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the inputs of a graph, parameters and buffers among them, and its outputs."""
    inputs = [found[1] for line in lines if (found := _DEFINED.match(line)) and found[2] == "placeholder"]
    outputs = [name for line in lines if _RETURNED.match(line) for name in _WORD.findall(line)]
    return (*inputs, *outputs)


def _line_with_names(line: str, names: Mapping[str, str]) -> str:
    if _RETURNED.match(line):
        return _WORD.sub(lambda word: names.get(word[0], word[0]), line)
    defined = _DEFINED.match(line)
    if defined and defined[2] == "placeholder":
        # Of a submodule, it is named as the node.
        line = _TARGET.sub(lambda target: names[target[0]] if target[0] == defined[1] else target[0], line)
    return _USED.sub(lambda used: f"%{names.get(used[1], used[1])}", line)
