"""XNNPACK, int8: partitions that depend on each other stop lowering."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        y = x + x
        return self.layer(y - 0.5 * torch.max(y))


x = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
model = torch.export.export(Shifted().eval(), (x,)).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(x)
program = torch.export.export(convert_pt2e(prepared), (x,))
try:
    to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
except AssertionError as error:
    print(f"AssertionError: {error}")
    sys.exit(1)
print("not reproduced")
