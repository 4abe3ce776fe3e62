"""XNNPACK: of two batch norms without factors and terms, the second gets the first one's constants."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Norms(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.BatchNorm2d(1, affine=False)
        self.second = torch.nn.BatchNorm2d(1, affine=False)
        self.second.running_mean.fill_(-100.0)

    def forward(self, x):
        return self.first(x), self.second(x)


model, x = Norms().eval(), torch.ones(1, 1, 1, 1)
program = torch.export.export(model, (x,))
try:
    lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected, got = (
    [round(each.item()) for each in made] for made in (model(x), runtime.run_method("forward", (x,)))
)
if expected != got:
    print(f"eager gives {expected}, XNNPACK gives {got}")
    sys.exit(1)
print("not reproduced")
