"""Portable kernels: a constant of one row, permuted, counts as one of another order of dimensions and is refused."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(1, 4, 1, dtype=torch.bool).permute(2, 1, 0))

    def forward(self, x):
        return torch.logical_and(x > 0, self.mask)


model, inputs = Masked(), (torch.tensor([-1.0, 1.0, 2.0, -2.0]).reshape(1, 4, 1),)
assert model.mask.is_contiguous()
pte = to_edge_transform_and_lower(torch.export.export(model, inputs)).to_executorch().buffer
runtime = _load_for_executorch_from_buffer(pte)
try:
    given = runtime.run_method("forward", inputs)[0]
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
if not torch.equal(given, model(*inputs)):
    print(f"eager {model(*inputs).tolist()}, runtime {given.tolist()}")
    sys.exit(1)
print("not reproduced")
