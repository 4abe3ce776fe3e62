"""Portable kernels: a constant pad by a negative amount, which cuts off, does not run."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Crop(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.pad(x, (-1, 0))


inputs = (torch.tensor([[1.0, 2.0, 3.0]]),)
lowered = to_edge_transform_and_lower(torch.export.export(Crop(), inputs))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
eager = Crop()(*inputs).tolist()
try:
    given = runtime.run_method("forward", inputs)[0].tolist()
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
if given != eager:
    print(f"eager {eager}, runtime {given}")
    sys.exit(1)
print("not reproduced")
