"""Programs made in ways that no target has: two methods after to_edge, a pass of the user's own, a first state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from executorch_goldens import Build, case
from models.situations.limits import Function

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager


@case(guards="to_edge takes several methods, each with its own graph")
def two_methods_of_edge(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import to_edge

    inputs = (build.data.tensor("x", 2, 3),)
    functions = {"doubled": lambda x: x * 2.0, "tripled": lambda x: x * 3.0 + 1.0}
    methods = {name: build.method(Function(made), inputs, name) for name, made in functions.items()}
    return to_edge(
        {name: torch.export.export(made, inputs) for name, made in methods.items()}
    ).to_executorch()


@case(guards="a clone that changes the layout is no copy to leave out")
def clones_removed_before(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.transforms.remove_clone_ops import RemoveCloneOpsTransform
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    def cloned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x * 2.0).clone(memory_format=torch.channels_last) + 1.0, (x * 3.0).clone() + 1.0

    module, inputs = Function(cloned), (build.data.tensor("x", 1, 2, 3, 4),)
    return to_edge_transform_and_lower(
        torch.export.export(build.method(module, inputs), inputs),
        transform_passes=[RemoveCloneOpsTransform()],
        partitioner=[XnnpackPartitioner()],
    ).to_executorch()


class Summed(nn.Module):
    """A running sum that does not begin at zero."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.tensor([[1.0, 2.0, 3.0]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2.0


@case(guards="a state keeps the value that it begins with")
def sum_from_first_value(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    inputs = (build.data.tensor("x", 1, 3),)
    method = torch.export.export(build.method(Summed(), inputs), inputs)
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["total"])])
    return to_edge_transform_and_lower(method).to_executorch(config)
