"""The nodes of a graph: their operators, in the edge dialect or in torch's own, and where they come from."""

from __future__ import annotations

from typing import Any

from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch.fx import Node


def operator_of(target: Any) -> Any:
    """Return the operator of torch that a node's target is, in the edge dialect or as it is."""
    return target._op if isinstance(target, EdgeOpOverload) else target


def following(node: Node) -> set[Node]:
    """Return the nodes that are computed from a node."""
    waiting, found = [node], set[Node]()
    while waiting:
        users = waiting.pop().users.keys() - found
        found |= users
        waiting += users
    return found


def traced_from(node: Node) -> str:
    """Return the path of the innermost module that a node was traced from; empty where it is not known."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return str(stack[-1][0]).removeprefix("L['self']").lstrip(".") if stack else ""
