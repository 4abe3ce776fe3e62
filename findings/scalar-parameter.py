"""TOSA: a parameter without dimensions that meets a vector stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return x * self.scale


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Scaled(), (torch.ones(3),))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
