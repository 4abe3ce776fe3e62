"""Portable kernels: gather refuses int32 indices, which torch accepts."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Gather(torch.nn.Module):
    def forward(self, x, indices):
        return torch.gather(x, 1, indices)


inputs = (torch.arange(6.0).reshape(2, 3), torch.tensor([[2, 0], [1, 1]], dtype=torch.int32))
expected = Gather()(*inputs)
pte = to_edge_transform_and_lower(torch.export.export(Gather(), inputs)).to_executorch().buffer
program = _load_for_executorch_from_buffer(pte)  # the runtime does not keep pte
try:
    got = program.run_method("forward", inputs)[0]
except RuntimeError as error:
    print(f"eager gives {expected.tolist()}; the runtime refuses: {error}")
    sys.exit(1)
if not torch.equal(got, expected):
    print(f"eager gives {expected.tolist()}; the runtime gives {got.tolist()}")
    sys.exit(1)
print("not reproduced")
