"""TOSA FP: a masked softmax of a tensor without dimensions stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class MaskedSoftmax(torch.nn.Module):
    def forward(self, x, mask):
        return torch.masked.softmax(x, 0, mask=mask)


inputs = (torch.tensor(-8.5), torch.tensor(True))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
try:
    to_edge_transform_and_lower(torch.export.export(MaskedSoftmax(), inputs), partitioner=[partitioner])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
