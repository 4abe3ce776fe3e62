"""TOSA FP: a distance of int32 tensors stops lowering at a view of int64."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Distances(torch.nn.Module):
    def forward(self, x, y, z):
        return torch.nn.functional.triplet_margin_loss(x, y, z)


inputs = (*(torch.arange(10, dtype=torch.int32).reshape(5, 2) + n for n in range(3)),)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
try:
    to_edge_transform_and_lower(torch.export.export(Distances(), inputs), partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
