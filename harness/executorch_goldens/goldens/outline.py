"""The one reader of a payload's text, that of a golden's section: its graphs, values and operators.

A payload that is compared with a golden is written as text and read back like that: the text holds everything. Only the
constants of payloads are kept as well, because the text summarizes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from executorch_goldens.decode import Constant, Decoded
from executorch_goldens.decode.decoded import KIND

#: Two spaces a level (`executorch_goldens.decode.text`).
INDENT = 2
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
_NAME = r'(?P<name>"(?:[^"\\]|\\.)*"|\S+)'
_TYPED = re.compile(_NAME + r": (?P<type>.*)")
_ASSIGNED = re.compile(r"(?P<name>\S+) = (?P<value>.*)")
_HEAD = re.compile(rf"(?P<kind>{KIND.pattern}) (?P<size>\d+) bytes")
#: Keywords of the lines that describe a constant's contents.
_CONTENTS = frozenset({"sha256", "values", "min", "max", "nans", "distinct", "first", "last"})


class OutlineError(ValueError):
    """A text that is not a golden of a decoded payload."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(line, text)
        self.line = line
        self.text = text

    def __str__(self) -> str:
        return f"line {self.line} is not part of a decoded payload's text: {self.text[:60]!r}"


@dataclass(frozen=True)
class Contents:
    """Contents of a constant: the facts in the text, and the constant itself if it was read from a payload."""

    facts: Mapping[str, str]
    constant: Constant | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes."""
        return self.facts.get("sha256", "")


@dataclass(frozen=True)
class OutlineValue:
    """A value of a graph, as written in the text."""

    name: str
    type: str
    attributes: Mapping[str, str]
    contents: Contents | None


@dataclass(frozen=True)
class OutlineOperator:
    """An operator, as written in the text; operands are (role, name), with the name ``none`` for an absent one."""

    type: str
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class OutlineGraph:
    """A graph, as written in the text; inputs and outputs in the order in which arguments are bound to them."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Mapping[str, OutlineValue]
    operators: tuple[OutlineOperator, ...]
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class OutlineDelegate:
    """A delegate of a ``.pte``, as written in the text."""

    name: str
    backend: str
    attributes: Mapping[str, str]
    inner: Outline | None


@dataclass(frozen=True)
class Outline:
    """A decoded payload, as written in its text."""

    kind: str
    size: str
    facts: Mapping[str, str]
    graphs: tuple[OutlineGraph, ...]
    blobs: Mapping[str, OutlineValue]
    delegates: tuple[OutlineDelegate, ...]
    unread: tuple[str, ...]
    text: str = field(default="", compare=False, repr=False)


def described(attributes: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the attributes without those that only number other things."""
    return tuple((name, value) for name, value in attributes.items() if name not in NUMBERING)


# Of a large text there are many, and a frozen one takes twice as long to make.
@dataclass(slots=True)
class _Node:
    """A line and the lines indented under it."""

    number: int
    text: str
    children: list[_Node] = field(default_factory=list)

    def refuse(self) -> OutlineError:
        return OutlineError(self.number, self.text)


def outline(source: Decoded | str) -> Outline:
    """Return the outline of a decoded payload or of a golden's text.

    Raises
    ------
    OutlineError
        If a text is not what `Decoded.text` writes.
    """
    text, decoded = (source, None) if isinstance(source, str) else (source.text(), source)
    return replace(_outline(_tree(text.splitlines()), decoded), text=text)


class Outlines:
    """The outlines of texts, each read once until they are forgotten: they take more memory than the texts."""

    def __init__(self) -> None:
        self._read: dict[str, Outline] = {}

    def read(self, text: str) -> Outline:
        """Return the outline of a text; raise OutlineError."""
        if text not in self._read:
            self._read[text] = outline(text)
        return self._read[text]

    def forget(self) -> None:
        """Let go of all that was read."""
        self._read.clear()


def _tree(lines: Iterable[str]) -> list[_Node]:
    roots: list[_Node] = []
    open_nodes: list[_Node] = []
    for number, line in enumerate(lines, 1):
        text = line.lstrip(" ")
        depth, odd = divmod(len(line) - len(text), INDENT)
        if not text or odd or depth > len(open_nodes):
            raise OutlineError(number, line)
        node = _Node(number, text)
        del open_nodes[depth:]
        (open_nodes[-1].children if open_nodes else roots).append(node)
        open_nodes.append(node)
    return roots


def _outline(nodes: list[_Node], decoded: Decoded | None) -> Outline:
    head = _HEAD.fullmatch(nodes[0].text) if nodes else None
    if head is None:
        raise nodes[0].refuse() if nodes else OutlineError(1, "")
    facts: dict[str, str] = {}
    graphs: list[OutlineGraph] = []
    blobs: dict[str, OutlineValue] = {}
    delegates: list[OutlineDelegate] = []
    unread: list[str] = []
    for keyword, rest, node in _described(nodes[1:], facts):
        if keyword == "graph":
            graphs.append(_graph(rest, node, decoded, len(graphs)))
        elif keyword == "data":
            value = _value(rest, node, None)
            blobs[value.name] = value
        elif keyword == "delegate":
            inner = decoded.delegates[len(delegates)].decoded if decoded else None
            delegates.append(_delegate(rest, node, inner))
        elif keyword == "unread":
            unread.append(rest)
        else:
            raise node.refuse()
    return Outline(head["kind"], head["size"], facts, tuple(graphs), blobs, tuple(delegates), tuple(unread))


def _described(nodes: Iterable[_Node], attributes: dict[str, str]) -> Iterator[tuple[str, str, _Node]]:
    """Yield the first word and the rest of each line, with its node; `attributes` gets the lines that assign one."""
    for node in nodes:
        keyword, _, rest = node.text.partition(" ")
        if rest.startswith("= "):
            _assign(node, attributes)
        else:
            yield keyword, rest, node


def _assign(node: _Node, attributes: dict[str, str]) -> None:
    match = _ASSIGNED.fullmatch(node.text)
    if match is None or node.children or match["name"] in attributes:
        raise node.refuse()
    attributes[match["name"]] = match["value"]


def _typed(text: str, node: _Node) -> tuple[str, str]:
    match = _TYPED.fullmatch(text)
    if match is None:
        raise node.refuse()
    return match["name"], match["type"]


def _graph(name: str, node: _Node, decoded: Decoded | None, at: int) -> OutlineGraph:
    constants = {}
    if decoded:
        values = decoded.graphs[at].values.values()
        constants = {place: value.constant for place, value in enumerate(values)}
    attributes: dict[str, str] = {}
    inputs: list[str] = []
    outputs: list[str] = []
    boundary: dict[str, OutlineValue] = {}
    values_by_name: dict[str, OutlineValue] = {}
    operators: list[OutlineOperator] = []
    for keyword, rest, child in _described(node.children, attributes):
        if keyword in ("input", "output"):
            operand, type_ = _operand(rest)
            (inputs if keyword == "input" else outputs).append(operand)
            boundary[operand] = OutlineValue(operand, type_, {}, None)
        elif keyword == "value":
            value = _value(rest, child, constants.get(len(values_by_name)))
            values_by_name[value.name] = value
        elif keyword == "operator":
            operators.append(_operator(rest, child))
        else:
            raise child.refuse()
    # Of a program, a golden has no further lines about them (`executorch_goldens.goldens.program`).
    for value in boundary.values():
        if value.type:
            values_by_name.setdefault(value.name, value)
    bound = [_as_bound(names, values_by_name) for names in (inputs, outputs)]
    return OutlineGraph(name, bound[0], bound[1], values_by_name, tuple(operators), attributes)


def _as_bound(names: list[str], values: Mapping[str, OutlineValue]) -> tuple[str, ...]:
    """Return the inputs or outputs of a graph in the order in which arguments are bound to them.

    XNNPACK binds them by external id, whatever their order in the list (``XNNExecutor::initialize`` in
    ExecuTorch's ``backends/xnnpack/runtime/XNNExecutor.cpp`` sorts them). Other backends bind them in the order of
    the list.
    """
    ids = {name: values[name].attributes.get("external_id", "") for name in names if name in values}
    if len(ids) < len(names) or not all(number.isdecimal() for number in ids.values()):
        return tuple(names)
    return tuple(sorted(names, key=lambda name: int(ids[name])))


def _operand(text: str) -> tuple[str, str]:
    """Return the name and the type of an operand; no type where none is written."""
    match = _TYPED.fullmatch(text)
    return (match["name"], match["type"]) if match else (text, "")


def _value(text: str, node: _Node, constant: Constant | None) -> OutlineValue:
    name, type_ = _typed(text, node)
    attributes: dict[str, str] = {}
    facts: dict[str, str] = {}
    for keyword, rest, child in _described(node.children, attributes):
        if keyword not in _CONTENTS:
            raise child.refuse()
        facts[keyword] = f"{facts[keyword]} {rest}" if keyword in facts else rest
    return OutlineValue(name, type_, attributes, Contents(facts, constant) if facts else None)


def _operator(type_: str, node: _Node) -> OutlineOperator:
    attributes: dict[str, str] = {}
    inputs: list[tuple[str, str]] = []
    outputs: list[tuple[str, str]] = []
    for keyword, rest, child in _described(node.children, attributes):
        if keyword.startswith("output"):
            outputs.append((keyword, _operand(rest)[0]))
        elif rest and not attributes and not outputs:
            inputs.append((keyword, rest))
        else:
            raise child.refuse()
    return OutlineOperator(type_, tuple(inputs), tuple(outputs), attributes)


def _delegate(text: str, node: _Node, decoded: Decoded | None) -> OutlineDelegate:
    name, backend = _typed(text, node)
    attributes: dict[str, str] = {}
    inner: list[_Node] = []
    for child in node.children:
        if inner or _HEAD.fullmatch(child.text):
            inner.append(child)
        else:
            _assign(child, attributes)
    return OutlineDelegate(name, backend, attributes, _outline(inner, decoded) if inner else None)
