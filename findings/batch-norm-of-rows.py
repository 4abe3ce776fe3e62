"""TOSA: a batch norm after a linear layer stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower

partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval()
program = torch.export.export(model, (torch.ones(2, 3),))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
