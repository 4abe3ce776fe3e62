"""TOSA: two linear layers with a dynamic batch stop lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower

partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
shapes = ({0: torch.export.Dim("batch", min=1, max=8)},)
program = torch.export.export(model, (torch.ones(2, 3),), dynamic_shapes=shapes)
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
