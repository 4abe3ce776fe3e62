"""Finds the pass that made each operator of a payload: nodes carry marks from export to serialization.

A mark is in a node's metadata, which ExecuTorch's passes hand on: a pass that traces a graph again (``ExportPass``)
gives the node that it makes of another one that one's metadata. Where metadata does not survive (``torch.export``, the
decomposition on the way to the edge dialect), the graph is aligned with the last one that was seen.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from executorch_goldens.exporting.dialect import operator_of
from executorch_goldens.exporting.observing import Observer
from executorch_goldens.exporting.program import ExportProgress, Request

#: Has the class of XNNPACK's payload before it is serialized.
XNNPACK_SCHEMA = "executorch.backends.xnnpack.serialization.xnnpack_graph_schema"

#: Key of a node's metadata. Nothing reads it but this module: a test compares the bytes that are made.
MARK = "goldens_origin"

#: A symbolic size, which is numbered again with each graph.
SYMBOL = re.compile(r"\b[su]\d+\b")
#: Names of inputs and constants: ``module()`` makes attributes of them, ``torch.export`` placeholders.
VALUE = "value"

#: The values of a delegate with their origins.
OfDelegate = tuple[tuple[str, tuple[str, ...]], ...]


#: Numbers of nodes in all exports of this process: one that an earlier export left in a graph is none of the next.
_numbers = itertools.count()


class Mark(NamedTuple):
    """Origin of a node.

    Attributes
    ----------
    number
        Number of the node, in the order in which they were first seen; what is made from a node has its mark, too.
    operator
        The kind of node when it got the mark.
    origin
        The pass or the stage that made it, then the passes that turned it into a different operator.
    """

    number: int
    operator: str
    origin: tuple[str, ...]


class Marking(Observer):
    """Marks the nodes of an export."""

    def around(self, request: Request, stages: Iterator[ExportProgress]) -> Iterator[ExportProgress]:
        """Export, and let marks see the graphs."""
        request.watch.mark(OriginMarks())
        yield from stages


class OriginMarks:
    """The origins of the nodes of one export, and of the serialized operators.

    Attributes
    ----------
    delegates
        See `executorch_goldens.artifact.Watched.origins`. Unknown values are missing.
    constants
        Names of the constants of the graph that a backend's passes left.
    """

    def __init__(self) -> None:
        self.delegates: list[OfDelegate] = []
        self.constants: frozenset[str] = frozenset()
        self._owners: dict[int, Node] = {}
        self._last: GraphModule | None = None
        # Of the payload that is being serialized: its values, how many operators each graph of it has, and for
        # XNNPACK the values of nodes.
        self._values: dict[str, set[tuple[str, ...]]] = {}
        self._seen: dict[str, int] = {}
        self._ids: dict[Node, int] = {}
        # The bytes themselves: two delegates may have the same.
        self._payloads: list[tuple[bytes, OfDelegate]] = []

    def note(self, module: GraphModule, maker: str) -> None:
        """Note a graph: everything new in it was made by `maker`.

        A node that is made of another one has its mark. Of several the first that is the same operator is taken for
        that one, and `maker` made the others. One alone that is a different operator is that one, converted.
        """
        nodes = list(_nodes(module))
        self._align(nodes)
        made_of: dict[int, list[Node]] = {}
        for node in nodes:
            mark = node.meta.get(MARK)
            # A constant is none of the operator that it was made for.
            if mark is not None and (_operator(node) != VALUE or mark.operator == VALUE):
                made_of.setdefault(mark.number, []).append(node)
            else:
                self._mark(node, (maker,))
        for number, made in made_of.items():
            self._note_made(number, made, maker)
        # A pass of a branch of control flow gets the branch alone.
        if self._last is None or module not in _modules(self._last):
            self._last = module

    def _align(self, nodes: Sequence[Node]) -> None:
        """Copy marks from the last graph if no node has one; decomposition keeps only those of parameters."""
        if self._last is not None and not any(
            MARK in each.meta for each in nodes if _operator(each) != VALUE
        ):
            _inherit(list(_nodes(self._last)), nodes)

    def _note_made(self, number: int, made: Sequence[Node], maker: str) -> None:
        """Note the nodes that have the mark `number`: one of them is its owner, or is the owner converted."""
        same = [node for node in made if _operator(node) == node.meta[MARK].operator]
        if not same and len(made) == 1:
            self._mark(made[0], (*made[0].meta[MARK].origin, maker))
            return
        if same and self._owners.get(number) not in same:
            self._owners[number] = same[0]
        for node in made:
            if not same or node is not self._owners[number]:
                self._mark(node, (maker,))

    def _mark(self, node: Node, origin: tuple[str, ...]) -> None:
        number = next(_numbers)
        node.meta[MARK] = Mark(number, _operator(node), origin)
        self._owners[number] = node

    def visited(self, node: Node, arguments: Sequence[Any]) -> None:
        """Attribute new content of a payload to `node`, whose visitor was called with `arguments`."""
        for argument in arguments:
            if isinstance(argument, _loaded("tosa_serializer", "TosaSerializer")):
                self._note_tosa(node, argument)
            elif isinstance(argument, _loaded(XNNPACK_SCHEMA, "XNNGraph")):
                self._note_xnnpack(node, argument)
                ids = next(each for each in arguments if isinstance(each, dict))
                # An input is no constant.
                self._ids = {key: number for key, number in ids.items() if number not in argument.input_ids}

    def _note_tosa(self, node: Node, payload: Any) -> None:
        region = payload.currRegion
        block = region.currBasicBlock
        place = f"{region.name}/{block.name}"
        operators = block.operators
        constants = {each.name: each for each in node.graph.nodes if each.op == "placeholder"}
        for operator in operators[self._seen.get(place, 0) :]:
            for name in operator.outputs:
                # Constants that are placeholders come before the first operator. In a region of its own, a name ends
                # with the region's.
                constant = constants.get(name) or constants.get(name.removesuffix(f"_{region.name}"))
                self._add(name, constant or node)
        self._seen[place] = len(operators)

    def _note_xnnpack(self, node: Node, payload: Any) -> None:
        for operator in payload.xnodes[self._seen.get("", 0) :]:
            for role, number in vars(operator.xnode_union).items():
                if role.startswith("output") and role.endswith("_id"):
                    self._add(f"%{number}", node)
        self._seen[""] = len(payload.xnodes)

    def _add(self, value: str, node: Node) -> None:
        if MARK in node.meta:
            self._values.setdefault(value, set()).add(node.meta[MARK].origin)

    def serialized(self, payload: bytes) -> None:
        """Note that the visited operators became `payload`."""
        self._add_constants()
        # A name that two graphs of a payload have says nothing.
        known = tuple((value, origins.pop()) for value, origins in self._values.items() if len(origins) == 1)
        self._payloads.append((payload, known))
        self._values, self._seen, self._ids, self.constants = {}, {}, {}, frozenset()

    def _add_constants(self) -> None:
        """Note the values of the payload that no operator makes."""
        for node, number in self._ids.items():
            if f"%{number}" not in self._values:
                self._add(f"%{number}", node)
        if not self._seen and self._last is not None:
            # A payload that only returns constants: no visitor was called.
            for node in self._last.graph.nodes:
                if node.name in self.constants and node.users:
                    self._add(node.name, node)

    def delegate(self, payload: bytes) -> None:
        """Note the next delegate of the lowered program."""
        self.delegates.append(next((known for made, known in self._payloads if made is payload), ()))


def _modules(module: GraphModule) -> Iterator[GraphModule]:
    """Yield `module`, and the branches and bodies of control flow in it."""
    yield module
    for node in module.graph.nodes:
        inner = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(inner, GraphModule):
            yield from _modules(inner)


def _nodes(module: GraphModule) -> Iterator[Node]:
    for each in _modules(module):
        yield from (node for node in each.graph.nodes if node.op != "output")


def _operator(node: Node) -> str:
    return VALUE if node.op in ("placeholder", "get_attr") else str(operator_of(node.target))


def _inherit(before: Sequence[Node], after: Sequence[Node]) -> None:
    """Give the nodes of a graph the marks of the graph that it was made of, by the order of their operators."""
    for was, now in _aligned(before, after, (_signature, _known_operator)):
        if MARK in was.meta:
            now.meta[MARK] = was.meta[MARK]


def _known_operator(node: Node) -> str:
    """Return the operator of a node when it was marked: lowering gives those that it keeps whole a name for a while."""
    return node.meta[MARK].operator if MARK in node.meta else _operator(node)


def _aligned(
    before: Sequence[Node], after: Sequence[Node], keys: Sequence[Callable[[Node], str]]
) -> Iterator[tuple[Node, Node]]:
    """Yield the nodes that are alike by the first of `keys`, between these by the next: quantization changes types."""
    key, *others = keys
    matcher = SequenceMatcher(None, [*map(key, before)], [*map(key, after)], autojunk=False)
    for kind, start, end, begin, stop in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(before[start:end], after[begin:stop], strict=True)
        elif kind == "replace" and others:
            yield from _aligned(before[start:end], after[begin:stop], others)


def _signature(node: Node) -> str:
    """Return the operator of a node with the types and shapes of its results, whatever symbolic sizes are called."""
    value = node.meta.get("val")
    results = value if isinstance(value, list | tuple) else [value]
    types = [
        f"{each.dtype} {tuple(each.shape)}" if isinstance(each, torch.Tensor) else type(each).__name__
        for each in results
    ]
    return " ".join([_known_operator(node), *(SYMBOL.sub("s", each) for each in types)])


def _loaded(module: str, name: str) -> Any:
    """Return a class, or no class where no export of this process needs its module."""
    return getattr(sys.modules.get(module), name, ())
