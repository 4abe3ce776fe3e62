"""TOSA INT: a comparison of int8 inputs is accepted and stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Greater(torch.nn.Module):
    def forward(self, n, m):
        return n > m


inputs = (torch.ones(3, dtype=torch.int8), torch.zeros(3, dtype=torch.int8))
program = torch.export.export(Greater(), inputs)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
