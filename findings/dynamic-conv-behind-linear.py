"""XNNPACK with dynamic quantization: the input of a linear layer before a convolution is copied to channels-last."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class LinearThenConv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4, bias=False)
        self.linear.weight = torch.nn.Parameter(torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0])))
        self.conv = torch.nn.Conv2d(4, 4, 1, bias=False)
        self.conv.weight = torch.nn.Parameter(torch.eye(4).reshape(4, 4, 1, 1))

    def forward(self, x):
        return self.conv(self.linear(x))


# Channels, height and width are equal, so that no shape gives it away.
inputs = (torch.ones(1, 4, 4, 4),)
quantizer = XNNPACKQuantizer().set_global(
    get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
)
model = prepare_pt2e(torch.export.export(LinearThenConv().eval(), inputs).module(), quantizer)
model(*inputs)
model = convert_pt2e(model)
edge = to_edge_transform_and_lower(torch.export.export(model, inputs), partitioner=[XnnpackPartitioner()])
# The runtime reads these bytes while it runs.
program = edge.to_executorch().buffer
method = Runtime.get().load_program(program).load_method("forward")
(given,) = method.execute(inputs)
expected = model(*inputs)
if not torch.allclose(given, expected, atol=0.1):
    rows = [[round(value) for value in result[0, 1, 0].tolist()] for result in (expected, given)]
    print(f"a row of the quantized model is {rows[0]}, of the runtime {rows[1]}")
    sys.exit(1)
print("not reproduced")
