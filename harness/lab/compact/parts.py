"""A line for each part of a program that is several, as the calls of a sheet are, each with outputs of its own.

A line says what leads to the outputs of the part, and changes with nothing else of the program::

    add-float32-2: graph 0f5c1d9e22ab; delegate 77ac0b3d51ef; outside: none; sqnr 41.3 dB, cosine 0.99996; right

``graph`` and ``delegate`` are digests of the nodes of the lowered graph and of the operators of its delegates, without
their names and numbers. ``-`` is in the place of a delegate where the part has none.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from executorch_goldens.artifact import Lowered
from executorch_goldens.goldens import accuracy
from executorch_goldens.goldens.accuracy import nearnesses
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.outline import Outline, OutlineOperator, OutlineValue, described

#: The names of a program's parts, each with how many of its outputs are its own, in order.
Parts = Sequence[tuple[str, int]]

#: Hexadecimal digits of a digest.
DIGITS = 12
#: Number of words in a line of a quantized part: one of them is its accuracy.
WORDS = 5
#: Placeholder for the digest of nothing.
NOTHING = "-"
_NODE = re.compile(
    r"    %(?P<name>\w+) : .*? = (?P<op>\w+)\[target=(?P<target>[^\]]*)\](?:\((?P<given>.*)\))?"
)
_RETURN = re.compile(r"    return [(\[](?P<names>.*?),?[)\]]")
_REFERENCE = re.compile(r"%(\w+)")
_GETITEM, _CALL = "operator.getitem", "executorch_call_delegate"
_DIALECT = re.compile(r"^(executorch\.exir\.dialects\.edge\._ops|torch\.ops)\.")


@dataclass(frozen=True)
class _Node:
    op: str
    target: str
    given: str


def lines(lowered: Lowered, parts: Parts, payloads: Mapping[str, Outline]) -> Iterator[str]:
    """Yield the line of each part of a program; nothing where its outputs are not those of its parts.

    Parameters
    ----------
    payloads
        Of its delegates, by their names.
    """
    nodes, outputs = _read(lowered.graph)
    if len(outputs) != sum(count for _, count in parts):
        return
    ratios = list(nearnesses(lowered))
    first = 0
    for name, count in parts:
        places = range(first, first + count)
        first += count
        graph = _Graph(nodes, payloads)
        for place in places:
            graph.visit(outputs[place])
        outside = ", ".join(f"{each} ({number})" for each, number in sorted(graph.outside.items()))
        words = [
            f"graph {_digest(graph.lines)}",
            f"delegate {_digest(graph.inside) if graph.inside else NOTHING}",
            f"outside: {outside or 'none'}",
        ]
        if ratios:
            worst = min((ratios[place] for place in places), key=lambda near: near.sqnr or 0.0)
            words.append(accuracy.text(worst).replace("; ", ", "))
        yield f"{name}: {'; '.join([*words, _verdict(lowered, places)])}"


def _verdict(lowered: Lowered, places: Sequence[int]) -> str:
    if not lowered.samples:
        return "not run"
    pairs = [(sample, place) for sample in lowered.samples for place in places]
    for sample, place in pairs:
        expected, made = (
            sample.expected[place],
            sample.outputs[place] if place < len(sample.outputs) else None,
        )
        if made is None or made.type != expected.type:
            return "wrong"
        if np.any(Deviation(expected, made).differences() > lowered.tolerance(sample, place)):
            return "wrong"
    imprecise = any(lowered.imprecision(sample, place) > lowered.limit for sample, place in pairs)
    return "imprecise" if imprecise else "right"


def compared(text: str, other: str) -> str:
    r"""Return a text without the ratios that differ from those of `other` by no more than a machine may change.

    >>> one = "a: graph 1; delegate 2; outside: none; sqnr 41.3 dB; right\n"
    >>> compared(one, one.replace("41.3", "41.5")), compared(one, one.replace("41.3", "31.5")) == one
    ('a: graph 1; delegate 2; outside: none; right\n', True)
    """
    theirs = dict(line.partition(": ")[::2] for line in other.splitlines())
    kept = []
    for line in text.splitlines():
        name, _, value = line.partition(": ")
        ratio, rest = _ratio(value)
        its = _ratio(theirs.get(name, ""))[0]
        kept.append(f"{name}: {rest}" if ratio and its and _same(ratio, its) else line)
    return "".join(f"{line}\n" for line in kept)


def _same(*ratios: str) -> bool:
    """Return whether two accuracies are the same; in a line a comma stands for a golden's semicolon."""
    one, other = (accuracy.read("", ratio.replace(", example", "; example")) for ratio in ratios)
    return accuracy.same(one, other)


def _ratio(text: str) -> tuple[str, str]:
    """Return the accuracy in a line, and the rest of it."""
    words = text.split("; ")
    if len(words) < WORDS:
        return "", text
    *first, ratio, verdict = words
    return ratio, "; ".join([*first, verdict])


def differing(before: str, after: str) -> tuple[str, ...]:
    r"""Return the names of the parts whose lines differ.

    >>> differing("a: graph 1\nb: graph 2\n", "a: graph 1\nb: graph 3\nc: graph 4\n")
    ('b', 'c')
    """
    old, new = (dict(line.partition(": ")[::2] for line in each.splitlines()) for each in (before, after))
    return tuple(name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name))


@dataclass
class _Graph:
    """The part of a lowered graph that leads to some outputs, as text without names.

    Attributes
    ----------
    lines
        A line for each node, those first that others read.
    inside
        The same for the operators of delegates.
    outside
        Number of operators outside of delegates, by type.
    """

    nodes: Mapping[str, _Node]
    payloads: Mapping[str, Outline]
    lines: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    outside: Counter[str] = field(default_factory=Counter)
    _known: dict[str, int] = field(default_factory=dict)

    def visit(self, name: str) -> int:
        """Return the number of a node; the nodes that it reads have one by then."""
        if name in self._known:
            return self._known[name]
        node = self.nodes[name]
        line = self._of_delegate(node) if node.target == _GETITEM else None
        if line is None:
            given = _REFERENCE.sub(lambda found: f"%{self.visit(found[1])}", node.given)
            target = node.target if node.op == "call_function" else ""
            line = f"{node.op} {target} {given}"
            if target and not target.endswith((_GETITEM, _CALL)):
                self.outside[_DIALECT.sub("", target)] += 1
        self._known[name] = len(self.lines)
        self.lines.append(line)
        return self._known[name]

    def _of_delegate(self, getitem: _Node) -> str | None:
        """Return the line of an output of a delegate; None if it is none, or cannot be followed."""
        call, _, place = getitem.given.removeprefix("args = (").partition("), ")[0].partition(", ")
        node = self.nodes.get(call.removeprefix("%"))
        if node is None or not node.target.endswith(_CALL):
            return None
        module, *given = _REFERENCE.findall(node.given)
        payload = self.payloads.get(module)
        found = _of_payload(payload, int(place), len(given)) if payload is not None else None
        if found is None:
            return None
        words, read = found
        self.inside += words
        return f"delegate ({', '.join(f'%{self.visit(given[index])}' for index in read)})"


def _of_payload(payload: Outline, place: int, inputs: int) -> tuple[list[str], list[int]] | None:
    """Return the part of a payload that leads to an output, and the places of its inputs; None if unknown."""
    if len(payload.graphs) != 1:
        return None
    (graph,) = payload.graphs
    if place >= len(graph.outputs) or len(graph.inputs) != inputs:
        return None
    writers = {name: operator for operator in graph.operators for _, name in operator.outputs}
    lines: list[str] = []
    read: list[int] = []
    known: dict[str, int] = {}

    def visit(name: str) -> int:
        if name in known:
            return known[name]
        operator = writers.get(name)
        if operator is not None:
            line = _of_operator(operator, graph.values, visit)
        elif name in graph.inputs:
            read.append(graph.inputs.index(name))
            line = f"input {_of_value(graph.values.get(name))}"
        else:
            line = _of_value(graph.values.get(name))
        for _, written in operator.outputs if operator is not None else (("", name),):
            known[written] = len(lines)
        lines.append(line)
        return known[name]

    visit(graph.outputs[place])
    return lines, list(dict.fromkeys(read))


def _of_operator(
    operator: OutlineOperator, values: Mapping[str, OutlineValue], visit: Callable[[str], int]
) -> str:
    given = ", ".join(f"{role} %{visit(name)}" for role, name in operator.inputs if name in values)
    stated = sorted(described(operator.attributes))
    made = ", ".join(_of_value(values.get(name)) for _, name in operator.outputs)
    return f"{operator.type} {stated} ({given}) -> {made}"


def _of_value(value: OutlineValue | None) -> str:
    if value is None:
        return "?"
    held = value.contents.sha256 if value.contents is not None else ""
    stated = sorted(described(value.attributes))
    return f"{value.type} {stated} {held}"


def _read(text: str) -> tuple[dict[str, _Node], list[str]]:
    """Return the nodes of the first graph of a text by their names, and the names of its outputs."""
    nodes: dict[str, _Node] = {}
    for line in text.splitlines():
        if found := _NODE.fullmatch(line):
            nodes[found["name"]] = _Node(found["op"], found["target"], found["given"] or "")
        elif found := _RETURN.fullmatch(line):
            names = [name.strip().removeprefix("%") for name in found["names"].split(",") if name.strip()]
            return nodes, names if all(name in nodes for name in names) else []
    return {}, []


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGITS]
