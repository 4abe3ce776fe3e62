"""XNNPACK, int8: a quantized input without dimensions stops lowering."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Scaled(torch.nn.Module):
    def forward(self, x, factor):
        return x * factor


inputs = (torch.ones(2, 3), torch.tensor(2.0))
model = torch.export.export(Scaled(), inputs).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
try:
    to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
print("not reproduced")
