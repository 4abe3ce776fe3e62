"""XNNPACK, int8: a concatenation of integers cannot be quantized."""

import sys

import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Concatenated(torch.nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y])


inputs = (torch.tensor([1, 2], dtype=torch.int32), torch.tensor([3, 4], dtype=torch.int32))
model = torch.export.export(Concatenated(), inputs).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
try:
    prepared(*inputs)
    convert_pt2e(prepared)(*inputs)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
print("not reproduced")
