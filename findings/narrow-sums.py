"""Portable kernels: addmm and convolution of bfloat16 and float16 add up in that type; mm does so in float32."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Linear(torch.nn.Module):
    """A linear layer becomes an addmm with a bias, and an mm without."""

    def forward(self, x, weight, bias):
        with_bias = torch.nn.functional.linear(x, weight, bias)
        return with_bias, torch.nn.functional.linear(x, weight), torch.conv1d(x[..., None], weight[..., None])


inputs = (
    torch.ones(1, 1024, dtype=torch.bfloat16),
    torch.ones(1, 1024, dtype=torch.bfloat16),
    torch.zeros(1, dtype=torch.bfloat16),
)
lowered = to_edge_transform_and_lower(torch.export.export(Linear(), inputs))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
got = [made.item() for made in _load_for_executorch_from_buffer(pte).run_method("forward", inputs)]
if got != [1024.0] * 3:
    print(f"1024 ones are, by addmm, mm and convolution, {', '.join(map(str, got))}")
    sys.exit(1)
print("not reproduced")
