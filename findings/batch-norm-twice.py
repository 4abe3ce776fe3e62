"""XNNPACK: a batch norm of a batch norm stops lowering."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower


class TwoNorms(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.BatchNorm2d(2)
        self.second = torch.nn.BatchNorm2d(2)

    def forward(self, x):
        return self.second(self.first(x))


program = torch.export.export(TwoNorms().eval(), (torch.ones(1, 2, 2, 2),))
try:
    to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except Exception as error:  # lowering raises no type of its own
    print(f"{error}: {error.__cause__!r}")
    sys.exit(1)
print("not reproduced")
