"""TOSA INT: an int64 constant that int32 does not have stops lowering."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Bounded(torch.nn.Module):
    def forward(self, x):
        return torch.where(x < 0, torch.tensor(torch.iinfo(torch.int64).min), x)


inputs = (torch.arange(3),)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec)
quantizer.set_global(get_symmetric_quantization_config())
try:
    prepared = prepare_pt2e(torch.export.export(Bounded(), inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    program = torch.export.export(convert_pt2e(prepared), inputs)
    to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
