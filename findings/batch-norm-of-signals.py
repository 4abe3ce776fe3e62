"""XNNPACK, int8: a batch norm of (batch, channels, length) before a quantized operator is refused by the runtime."""

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


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.conv = torch.nn.Conv1d(3, 4, 3)

    def forward(self, x):
        return self.conv(torch.relu(self.norm(x)))


inputs = (torch.ones(1, 3, 8),)
model = torch.export.export(Block().eval(), inputs).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
try:
    _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
except RuntimeError as error:
    print(error)
    sys.exit(1)
print("not reproduced")
