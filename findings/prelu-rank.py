"""XNNPACK: a PReLU of a tensor that is not four-dimensional stops lowering."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

program = torch.export.export(torch.nn.PReLU(3).eval(), (torch.ones(2, 3),))
try:
    to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
print("not reproduced")
