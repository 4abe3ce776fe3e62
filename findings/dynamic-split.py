"""exir: a split of a tensor with a dynamic batch takes no batch but that of the example."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


class Model(torch.nn.Module):
    def forward(self, x):
        return x.split(2, 1)[0]


shapes = ({0: torch.export.Dim("batch", min=2, max=16)},)
program = torch.export.export(Model(), (torch.ones(6, 4),), dynamic_shapes=shapes)
buffer = to_edge_transform_and_lower(program).to_executorch().buffer
method = Runtime.get().load_program(buffer).load_method("forward")
method.execute((torch.ones(6, 4),))
try:
    (given,) = method.execute((torch.ones(9, 4),))
except Exception as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    sys.exit(1)
print("not reproduced")
