"""TOSA: a sum over everything stops lowering where the graph is checked, as it is by default."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum()


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Model(), (torch.ones(2, 3),))
unchecked = EdgeCompileConfig(_check_ir_validity=False)
to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=unchecked)
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    print(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": "))
    sys.exit(1)
print("not reproduced")
