"""XNNPACK, int8: a convolution's result that is an output is transposed for the other operators that read it."""

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


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 2, 1, bias=False)
        self.conv.weight = torch.nn.Parameter(torch.eye(2).reshape(2, 2, 1, 1))

    def forward(self, x):
        y = self.conv(x)
        return torch.abs(y), y


inputs = (torch.arange(8.0).reshape(1, 2, 2, 2),)
model = torch.export.export(Branches().eval(), inputs).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(*inputs)
quantized = convert_pt2e(prepared)
lowered = to_edge_transform_and_lower(
    torch.export.export(quantized, inputs), partitioner=[XnnpackPartitioner()]
)
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected = [round(value) for value in quantized(*inputs)[0].flatten().tolist()]
given = [round(value) for value in runtime.run_method("forward", inputs)[0].flatten().tolist()]
if given != expected:
    print(f"quantized model {expected}, runtime {given}")
    sys.exit(1)
print("not reproduced")
