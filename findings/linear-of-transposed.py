"""XNNPACK: a linear layer of a transposed input stops lowering."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(5, 6))

    def forward(self, x, bias):
        return torch.nn.functional.linear(x.transpose(1, 2), self.weight, bias)


program = torch.export.export(Model(), (torch.ones(2, 6, 3), torch.ones(5)), strict=True)
try:
    to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
