"""A zoo with a pass that can name nodes otherwise: ``--models tests.support.zoo_renames --patches names``."""

from __future__ import annotations

from importlib import metadata

import torch

from executorch_goldens import Data, Example, case
from executorch_goldens.patches import Patch, register
from tests.support.zoo import SHAPE


class Units(torch.nn.Module):
    """Three operators in a row, so that all but the last are inside of their delegate."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * 2.0) + x


@case(guards="names of nodes that a pass makes")
def units(data: Data) -> Example:
    return Example(Units(), (data.tensor("x", *SHAPE),))


def name_otherwise(release: str) -> None:
    """Let Arm's last pass name nodes otherwise, but for those that a delegate returns."""
    from executorch.backends.arm._passes import InsertRescalePass
    from torch.fx.passes.infra.pass_base import PassResult

    original = InsertRescalePass.call

    def call(self: InsertRescalePass, graph_module: torch.fx.GraphModule) -> PassResult:
        result = original(self, graph_module)
        nodes = result.graph_module.graph.nodes
        returned = {node for output in nodes if output.op == "output" for node in output.all_input_nodes}
        for node in nodes:
            if node.op == "call_function" and node not in returned:
                node._rename(f"inner_{node.name}")
        return PassResult(result.graph_module, True)

    InsertRescalePass.call = call


RELEASE = metadata.version("executorch").partition("+")[0]
register(Patch("names", None, "names nodes otherwise", {RELEASE: {}}, name_otherwise, "it is a defect"))
