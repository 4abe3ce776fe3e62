"""TOSA: an average pool of a tensor without a batch stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, 2)


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Model(), (torch.ones(2, 4, 4),))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
