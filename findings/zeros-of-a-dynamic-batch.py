"""TOSA: zeros of the shape of a tensor whose batch is dynamic stop lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cat([x, torch.zeros_like(x)], 1)


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
batch = torch.export.Dim("batch", min=1, max=16)
program = torch.export.export(Model(), (torch.ones(2, 3),), dynamic_shapes=({0: batch},))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
