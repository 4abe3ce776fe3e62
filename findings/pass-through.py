"""XNNPACK: a copy to channels-last that needs no transposition stops lowering."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower


class Copied(torch.nn.Module):
    def forward(self, x):
        return torch.abs(x), x.to(memory_format=torch.channels_last)


x = torch.ones(2, 1, 3, 3)
try:
    to_edge_transform_and_lower(torch.export.export(Copied(), (x,)), partitioner=[XnnpackPartitioner()])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
print("not reproduced")
