"""Optimized kernels: add with an alpha scales the first operand where that has one element."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class ScaledAddend(torch.nn.Module):
    def forward(self, x, y):
        return torch.add(x, y, alpha=0.5)


inputs = (torch.tensor([10.0]), torch.tensor([2.0, 4.0]))
lowered = to_edge_transform_and_lower(torch.export.export(ScaledAddend(), inputs))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
eager = ScaledAddend()(*inputs).tolist()
given = runtime.run_method("forward", inputs)[0].tolist()
if given != eager:
    print(f"eager {eager}, runtime {given}")
    sys.exit(1)
print("not reproduced")
