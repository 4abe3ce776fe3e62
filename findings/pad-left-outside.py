"""TOSA: a pad of a type that the profile lacks stays outside as an operator that the runtime lacks."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.pad(x, (0, 1))


program = torch.export.export(Model(), (torch.ones(2, 3, dtype=torch.bfloat16),))
to_edge_transform_and_lower(program).to_executorch()
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
try:
    edge.to_executorch()
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
print("not reproduced")
