"""A graph module for tests, and an edit of it."""

from __future__ import annotations

import torch


class Model(torch.nn.Module):
    # Without annotations: pickled graph modules must not have any that are strings.
    def forward(self, x):  # type: ignore[no-untyped-def]
        return torch.relu(x) + 1


def traced() -> torch.fx.GraphModule:
    return torch.fx.symbolic_trace(Model())


def double(module: torch.fx.GraphModule) -> None:
    """Let `module` return twice its value, in its graph."""
    *_, output = module.graph.nodes
    with module.graph.inserting_before(output):
        output.args = (module.graph.call_function(torch.mul, (output.args[0], 2)),)
