"""Transforms of all backends: a convolution with two batch norms gets the constants of the first for both."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 1, bias=False)
        self.conv.weight.data.fill_(1.0)
        self.first = torch.nn.BatchNorm2d(1, eps=2**-10)
        self.second = torch.nn.BatchNorm2d(1, eps=2**-10)
        for norm in (self.first, self.second):  # each divides by one
            norm.running_var.fill_(1 - 2**-10)
        self.second.bias.data.fill_(100.0)

    def forward(self, x):
        return self.second(self.conv(self.first(self.conv(x))))


model = Twice().eval()
x = torch.tensor([1.0, 2.0]).reshape(1, 1, 1, 2)
try:
    program = to_edge_transform_and_lower(
        torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()]
    )
except Exception as error:
    print(f"not reproduced: {type(error).__name__}: {str(error).splitlines()[0]}")
    sys.exit(0)
pte = program.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected = model(x).flatten().tolist()
given = runtime.run_method("forward", (x,))[0].flatten().tolist()
if given != expected:
    print(f"eager gives {expected}, XNNPACK gives {given}")
    sys.exit(1)
print("not reproduced")
