"""TOSA FP: a padding of integers that are not quantized stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Padded(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.pad(x, (1, 1))


inputs = (torch.arange(6, dtype=torch.int32).reshape(2, 3),)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
try:
    to_edge_transform_and_lower(torch.export.export(Padded(), inputs), partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
