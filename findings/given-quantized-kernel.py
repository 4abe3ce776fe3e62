"""Quantized kernels: quantizing weights that are an input, per channel, ends the process."""

import os
import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

# For the out variants of what quantizes; before 1.4.1 its library loads after portable_lib's only.
from executorch.kernels import quantized  # noqa: F401
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Conv(torch.nn.Module):
    def forward(self, x, weight):
        return torch.nn.functional.conv2d(x, weight)


inputs = (torch.ones(1, 2, 3, 3), torch.ones(3, 2, 2, 2))
model = torch.export.export(Conv(), inputs).module()
config = get_symmetric_quantization_config(is_per_channel=True)
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(config))
prepared(*inputs)
lowered = to_edge_transform_and_lower(
    torch.export.export(convert_pt2e(prepared), inputs), partitioner=[XnnpackPartitioner()]
)
pte = lowered.to_executorch().buffer
if not (child := os.fork()):
    _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status < 0:
    print(f"the process that runs the program dies of signal {-status}")
    sys.exit(1)
print("not reproduced")
