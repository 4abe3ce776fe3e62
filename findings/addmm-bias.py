"""TOSA-1.0+INT: an addmm whose first operand is a parameter stops quantization."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.ones(3))
        self.weight = torch.nn.Parameter(torch.ones(4, 3))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


inputs = (torch.ones(2, 4),)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec).set_global(get_symmetric_quantization_config())
program = torch.export.export(Affine().eval(), inputs)
try:
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
    prepared(*inputs)
    convert_pt2e(prepared)
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
