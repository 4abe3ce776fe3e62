"""TOSA-1.0+INT: a mean of a tensor with a dynamic batch stops quantization."""

import contextlib
import io
import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Mean(torch.nn.Module):
    def forward(self, x):
        return torch.mean(x, (1, 2))


inputs = (torch.ones(6, 4, 3),)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec).set_global(get_symmetric_quantization_config())
batch = torch.export.Dim("batch", min=2, max=16)
program = torch.export.export(Mean(), inputs, dynamic_shapes=({0: batch},))
try:
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
    # torch prints the traceback of a graph that fails, too.
    with contextlib.redirect_stderr(io.StringIO()):
        prepared(*inputs)
    convert_pt2e(prepared)
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
