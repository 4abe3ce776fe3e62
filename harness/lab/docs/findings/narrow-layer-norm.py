"""Optimized kernels: layer norm of bfloat16 or float16 is wrong for rows of 256 elements or more."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

torch.manual_seed(0)
inputs = (torch.randn(1, 256).half(),)
model = torch.nn.LayerNorm(256, elementwise_affine=False)
lowered = to_edge_transform_and_lower(torch.export.export(model, inputs))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
got = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)[0]
expected = model(*inputs)
if not torch.allclose(got, expected, atol=0.01):
    print(f"eager gives {expected[0, :3].tolist()}, the runtime gives {got[0, :3].tolist()}")
    sys.exit(1)
print("not reproduced")
