"""XNNPACK, int8: where a convolution is refused, the quantization of its input has no effect or no output."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

# For the out variants of what dequantizes; before 1.4.1 its library loads after portable_lib's only.
from executorch.kernels import quantized  # noqa: F401
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class OfTable(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(3).reshape(3, 3, 1, 1))
        self.biases = torch.nn.Parameter(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))

    def forward(self, x):
        # A bias that is no constant but a part of one: XNNPACK refuses the convolution.
        return torch.nn.functional.conv2d(x, self.weight, self.biases[0])


inputs = (torch.ones(1, 3, 1, 1),)
quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
model = prepare_pt2e(torch.export.export(OfTable().eval(), inputs).module(), quantizer)
model(*inputs)
model = convert_pt2e(model)
edge = to_edge_transform_and_lower(torch.export.export(model, inputs), partitioner=[XnnpackPartitioner()])
# The runtime reads these bytes while it runs.
program = edge.to_executorch().buffer
(given,) = _load_for_executorch_from_buffer(program)(inputs)
expected = model(*inputs)
if not torch.allclose(given, expected, atol=0.1):
    rows = [[round(value, 1) for value in result.flatten().tolist()] for result in (expected, given)]
    print(f"the quantized model gives {rows[0]}, the runtime {rows[1]}")
    sys.exit(1)
print("not reproduced")
