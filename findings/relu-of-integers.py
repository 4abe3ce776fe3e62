"""TOSA: a ReLU of integers stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower

shows = False
for profile in ("FP", "INT"):
    partitioner = TOSAPartitioner(TosaCompileSpec(f"TOSA-1.0+{profile}"))
    program = torch.export.export(torch.nn.ReLU(), (torch.tensor([-1, 1], dtype=torch.int32),))
    try:
        to_edge_transform_and_lower(program, partitioner=[partitioner])
    except Exception as error:
        while error.__cause__:
            error = error.__cause__
        message = next(line for line in str(error).splitlines() if line)
        print(f"{profile}: {type(error).__name__}: {message}")
        shows = True
if shows:
    sys.exit(1)
print("not reproduced")
