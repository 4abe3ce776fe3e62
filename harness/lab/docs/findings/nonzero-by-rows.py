"""Portable kernels: nonzero writes rows into an output whose dimensions the program has in the other order."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Nonzero(torch.nn.Module):
    def forward(self, x):
        return torch.nonzero(x > 0.5)


inputs = (torch.eye(3),)
lowered = to_edge_transform_and_lower(torch.export.export(Nonzero(), inputs))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
got = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)[0]
expected = Nonzero()(*inputs)
if not torch.equal(got, expected):
    print(f"eager gives {expected.tolist()}, the runtime gives {got.tolist()}, with strides {got.stride()}")
    sys.exit(1)
print("not reproduced")
