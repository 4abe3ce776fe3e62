"""XNNPACK: a convolution whose batch is dynamic lowers to a program that takes no batch of 16."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

batch = torch.export.Dim("batch", max=64)
program = torch.export.export(
    torch.nn.Conv2d(1, 1, 1).eval(), (torch.ones(2, 1, 4, 4),), dynamic_shapes=({0: batch},)
)
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
for size in (2, 15, 16, 64):
    try:
        runtime.run_method("forward", (torch.ones(size, 1, 4, 4),))
    except RuntimeError as error:
        print(f"batch of {size}: {error}")
        sys.exit(1)
print("not reproduced")
