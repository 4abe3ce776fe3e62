"""XNNPACK, int8: a linear layer applied twice adds a wrong bias the second time."""

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


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.layer.weight.data.fill_(0.01)
        self.layer.bias.data.fill_(1.0)

    def forward(self, x):
        return self.layer(self.layer(x))


x = torch.tensor([[-100.0], [100.0]])
model = torch.export.export(Twice().eval(), (x,)).module()
prepared = prepare_pt2e(model, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
prepared(x)
converted = convert_pt2e(prepared)
program = to_edge_transform_and_lower(
    torch.export.export(converted, (x,)), partitioner=[XnnpackPartitioner()]
)
pte = program.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected, got = converted(x).flatten().tolist(), runtime.run_method("forward", (x,))[0].flatten().tolist()
if max(abs(a - b) for a, b in zip(expected, got, strict=True)) > 0.05:
    print(f"quantized eager gives {expected}, XNNPACK gives {got}")
    sys.exit(1)
print("not reproduced")
