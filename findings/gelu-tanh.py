"""XNNPACK: GELU(approximate="tanh") is computed as the exact GELU."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

x = torch.tensor([-2.5, 2.5])
model = torch.nn.GELU(approximate="tanh")
lowered = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected, got = model(x), runtime.run_method("forward", (x,))[0]
if (expected - got).abs().max() > 1e-4:
    exact = torch.nn.functional.gelu(x)
    print(
        f"eager gives {expected.tolist()}, XNNPACK gives {got.tolist()}; the exact GELU is {exact.tolist()}"
    )
    sys.exit(1)
print("not reproduced")
