"""TOSA INT: the condition of a quantized loop that compares with a number becomes a tensor of one element."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec


class Doubling(torch.nn.Module):
    def forward(self, x):
        return torch.ops.higher_order.while_loop(lambda y: y.sum() < 20.0, lambda y: (y + 1.0,), (x,), ())[0]


inputs = (torch.ones(3),)
quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT+cf"))
quantizer.set_global(get_symmetric_quantization_config())
program = torch.export.export(Doubling(), inputs)
quantize = getattr(quantizer, "quantize_with_submodules", None) or quantizer._quantize_with_submodules
try:
    quantize(program.module(check_guards=False), [inputs])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
