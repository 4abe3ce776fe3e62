"""Kernels: layer norm and group norm of values far from zero are wrong: a variance is a difference of squares."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Norms(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, (4,)), torch.nn.functional.group_norm(x, 1)


x = torch.tensor([[2000.0, 2000.25, 2000.5, 2000.75]])
lowered = to_edge_transform_and_lower(torch.export.export(Norms(), (x,)))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
eager, given = Norms()(x), runtime.run_method("forward", (x,))
wrong = [
    f"{name}: eager {want.tolist()}, runtime {got.tolist()}"
    for name, want, got in zip(("layer norm", "group norm"), eager, given, strict=True)
    if not torch.allclose(want, got, rtol=1e-3)
]
if wrong:
    print("; ".join(wrong))
    sys.exit(1)
print("not reproduced")
