"""The nodes of a graph: their operators, in the edge dialect or in torch's own, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch.fx import Node


def operator_of(target: Any) -> Any:
    """Return the operator of torch that a node's target is, in the edge dialect or as it is."""
    return target._op if isinstance(target, EdgeOpOverload) else target


def reached(first: Iterable[Node], onward: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Yield nodes, and those that `onward` leads to from each, the nearest first and each once."""
    waiting = [*first]
    found = set[Node]()
    for node in waiting:
        if node not in found:
            found.add(node)
            yield node
            waiting += onward(node)


def following(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes that are computed from some nodes."""
    return {*reached((user for node in nodes for user in node.users), lambda node: node.users)}


def traced_from(node: Node) -> str:
    """Return the path of the innermost module that a node was traced from; empty where it is not known."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return str(stack[-1][0]).removeprefix("L['self']").lstrip(".") if stack else ""
