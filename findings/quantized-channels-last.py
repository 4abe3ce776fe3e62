"""XNNPACK, int8: an operator that reads a channels-last input takes it for contiguous."""

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


class Sum(torch.nn.Module):
    def forward(self, x):
        return x + x


inputs = (torch.arange(8.0).reshape(1, 2, 2, 2).to(memory_format=torch.channels_last),)
model = torch.export.export(Sum(), inputs).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(*inputs)
quantized = convert_pt2e(prepared)
lowered = to_edge_transform_and_lower(
    torch.export.export(quantized, inputs), partitioner=[XnnpackPartitioner()]
)
pte = lowered.to_executorch().buffer  # the runtime does not keep it
(given,) = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
expected = quantized(*inputs)
if not torch.allclose(given, expected, atol=0.1):
    shown = [[round(value) for value in output.flatten().tolist()] for output in (expected, given)]
    print(f"quantized model {shown[0]}, runtime {shown[1]}")
    sys.exit(1)
print("not reproduced")
