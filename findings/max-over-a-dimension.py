"""XNNPACK: a maximum over a dimension is taken by the partitioner and refused by its visitor."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower


class Largest(torch.nn.Module):
    def forward(self, x):
        return torch.max(x, -1)[0]


program = torch.export.export(Largest(), (torch.ones(1, 2, 3, 8),))
try:
    to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
print("not reproduced")
