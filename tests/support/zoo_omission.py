"""A zoo with a pass that can be made to act: ``--models tests.support.zoo_omission --patches swapped-operands``."""

from __future__ import annotations

from importlib import metadata

from executorch_goldens import Data, Example, case
from executorch_goldens.patches import Patch, register
from tests.support.zoo import SHAPE, PlusConstant


@case(guards="an addition whose operands a pass may swap")
def plus(data: Data) -> Example:
    return Example(PlusConstant(2.0), (data.tensor("x", *SHAPE),))


def swap(release: str) -> None:
    """Let a pass of XNNPACK that has nothing to do here swap the operands of every addition."""
    import torch
    from executorch.backends.transforms.remove_getitem_op import RemoveGetItemPass
    from torch.fx.passes.infra.pass_base import PassResult

    def call(self: RemoveGetItemPass, graph_module: torch.fx.GraphModule) -> PassResult:
        for node in graph_module.graph.nodes:
            if "add" in str(node.target):
                node.args = (node.args[1], node.args[0], *node.args[2:])
        return PassResult(graph_module, True)

    RemoveGetItemPass.call = call


RELEASE = metadata.version("executorch").partition("+")[0]
register(
    Patch("swapped-operands", None, "swaps the operands of additions", {RELEASE: {}}, swap, "it is a defect")
)
