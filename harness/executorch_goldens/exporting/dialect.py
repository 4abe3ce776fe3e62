"""The operators of a graph, in the edge dialect or in torch's own."""

from __future__ import annotations

from typing import Any

from executorch.exir.dialects.edge._ops import EdgeOpOverload


def operator_of(target: Any) -> Any:
    """Return the operator of torch that a node's target is, in the edge dialect or as it is."""
    return target._op if isinstance(target, EdgeOpOverload) else target
