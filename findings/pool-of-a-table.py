"""TOSA-1.0+INT: an average pooling of a tanh stops lowering."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

inputs = (torch.linspace(-1.0, 1.0, 16).reshape(1, 1, 4, 4),)
model = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.AvgPool2d(2)).eval()
spec = TosaCompileSpec("TOSA-1.0+INT")
config = get_symmetric_quantization_config()
quantizer = TOSAQuantizer(spec)
quantizer.set_global(config)
quantizer.set_io(config)
prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
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
