"""TOSA INT: a transposed convolution with two groups, quantized by channel as it is by default, cannot be converted."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

inputs = (torch.ones(1, 4, 3, 3),)
program = torch.export.export(torch.nn.ConvTranspose2d(4, 8, 2, groups=2).eval(), inputs)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec).set_global(get_symmetric_quantization_config())
prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
prepared(*inputs)
try:
    converted = torch.export.export(convert_pt2e(prepared), inputs)
    to_edge_transform_and_lower(converted, partitioner=[TOSAPartitioner(spec)])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
