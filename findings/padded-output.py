"""XNNPACK, int8: a padding after a linear layer lowers to a delegate that the runtime refuses."""

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


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.nn.functional.pad(self.linear(x), (1, 1))


inputs = (torch.tensor([[1.0, -1.0]]),)
model = torch.export.export(Padded().eval(), inputs).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(*inputs)
lowered = to_edge_transform_and_lower(
    torch.export.export(convert_pt2e(prepared), inputs), partitioner=[XnnpackPartitioner()]
)
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
try:
    runtime.run_method("forward", inputs)
except RuntimeError as error:
    print(error)
    sys.exit(1)
print("not reproduced")
