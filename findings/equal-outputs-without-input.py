"""Two scalars in a model without inputs change places, or, from 1.4.1 on, stop lowering."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class NoInput(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(1))

    def forward(self):
        return self.table + 1.0, self.table + 2.0


try:
    lowered = to_edge_transform_and_lower(torch.export.export(NoInput(), ()))
except torch._export.verifier.SpecViolationError as error:
    print(f"SpecViolationError: {error}")
    sys.exit(1)
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected, got = ([y.item() for y in outputs] for outputs in (NoInput()(), runtime.run_method("forward", ())))
if got != expected:
    print(f"eager gives {expected}, the program gives {got}")
    sys.exit(1)
print("not reproduced")
