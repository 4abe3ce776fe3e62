"""TOSA-1.0+INT+FP: a float hardswish between quantized convolutions stops lowering."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 1, 1)
        self.last = torch.nn.Conv2d(1, 1, 1)

    def forward(self, x):
        return self.last(torch.nn.functional.hardswish(self.first(x)))


inputs = (torch.ones(1, 1, 2, 2),)
spec = TosaCompileSpec("TOSA-1.0+INT+FP")
config = get_symmetric_quantization_config()
prepared = prepare_pt2e(
    torch.export.export(Model().eval(), inputs).module(check_guards=False),
    TOSAQuantizer(spec).set_module_type(torch.nn.Conv2d, config),
)
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
try:
    to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
