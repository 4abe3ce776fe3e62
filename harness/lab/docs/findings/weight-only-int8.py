"""XNNPACK: a linear layer with torchao's weight-only int8 weights is computed on the codes of its weights."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 8)).eval()
quantize_(model, IntxWeightOnlyConfig(torch.int8, PerAxis(0)))
inputs = (torch.ones(1, 16),)
expected = model(*inputs)
lowered = to_edge_transform_and_lower(torch.export.export(model, inputs), partitioner=[XnnpackPartitioner()])
try:
    pte = lowered.to_executorch().buffer  # the runtime does not keep it
except RuntimeError as error:
    print(f"not reproduced: {error}")
    sys.exit(0)
got = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)[0]
if not torch.allclose(got, expected, atol=0.01):
    codes = torch.nn.functional.linear(*inputs, model[0].weight.qdata.float(), model[0].bias)
    print(
        f"eager gives {expected[0, :3].tolist()}, the runtime gives {got[0, :3].tolist()}; "
        f"with the codes of the weights it would be {codes[0, :3].tolist()}"
    )
    sys.exit(1)
print("not reproduced")
