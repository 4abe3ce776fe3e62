"""TOSA: a constant that a delegate has under two names is deleted with the first of them."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Close(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c = torch.nn.Buffer(torch.ones(2, 2))

    def forward(self, x):
        return x.isclose(self.c, equal_nan=True)


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Close(), (torch.ones(2, 2),))
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
