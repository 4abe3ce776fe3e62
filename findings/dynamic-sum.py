"""TOSA: a sum over the rows of a dynamic batch stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1)


model = Model()
shapes = ({0: torch.export.Dim("batch", min=2, max=16)},)
program = torch.export.export(model, (torch.ones(6, 4),), dynamic_shapes=shapes)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
