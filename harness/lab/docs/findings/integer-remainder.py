"""Portable kernels: the remainder of a negative int32 has the sign of the dividend."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Remainder(torch.nn.Module):
    def forward(self, n, m):
        return torch.remainder(n, m)


inputs = (torch.tensor([-1, 5, -4], dtype=torch.int32), torch.tensor([4, -3, 4], dtype=torch.int32))
lowered = to_edge_transform_and_lower(torch.export.export(Remainder(), inputs))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected, got = Remainder()(*inputs).tolist(), runtime.run_method("forward", inputs)[0].tolist()
if got != expected:
    print(f"eager gives {expected}, the runtime gives {got}")
    sys.exit(1)
print("not reproduced")
