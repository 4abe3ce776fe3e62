"""The runtime: a channels-last input of a program that was exported for a contiguous one is read as contiguous."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


x = torch.arange(8.0).reshape(1, 2, 2, 2)
program = to_edge_transform_and_lower(torch.export.export(Double(), (x,)))
pte = program.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
try:
    (given,) = runtime.run_method("forward", (x.to(memory_format=torch.channels_last),))
except (RuntimeError, ValueError):
    print("not reproduced")  # a layout that the program is not for may be refused
    sys.exit(0)
if not torch.equal(given, x * 2.0):
    shown = [output.flatten().int().tolist() for output in (x * 2.0, given)]
    print(f"eager {shown[0]}, runtime {shown[1]}")
    sys.exit(1)
print("not reproduced")
