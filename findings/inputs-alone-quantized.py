"""XNNPACK: linear layers whose outputs are not quantized give something else, with `output_activation=None`."""

import dataclasses
import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
inputs = (torch.randn(2, 8),)
config = dataclasses.replace(get_symmetric_quantization_config(), output_activation=None)
prepared = prepare_pt2e(torch.export.export(model, inputs).module(), XNNPACKQuantizer().set_global(config))
prepared(*inputs)
quantized = convert_pt2e(prepared)
program = to_edge_transform_and_lower(
    torch.export.export(quantized, inputs), partitioner=[XnnpackPartitioner()]
)
pte = program.to_executorch().buffer
try:
    (found,) = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
print(f"quantized in eager: {quantized(*inputs).tolist()}")
print(f"program: {found.tolist()}")
if not torch.allclose(quantized(*inputs), found, atol=0.1):
    sys.exit(1)
print("not reproduced")
