"""A constant in the lists of two concatenations in two TOSA partitions stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class TwoCats(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(2, 3))

    def forward(self, x):
        y = torch.cat((x, self.table))
        return torch.cat((y - torch.max(y), self.table))


program = torch.export.export(TwoCats(), (torch.ones(2, 3),))
try:
    to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))])
except RuntimeError as error:
    # Which user it goes on to name depends on PYTHONHASHSEED (#19045).
    print(f"{str(error).split(' but ')[0]} but has a user in another partition")
    sys.exit(1)
print("not reproduced")
