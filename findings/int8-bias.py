"""TOSA-1.0+INT: a linear layer whose bias is an input stops lowering."""

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
        self.weight = torch.nn.Parameter(torch.eye(2))

    def forward(self, x, bias):
        return torch.nn.functional.linear(x, self.weight, bias)


inputs = (torch.tensor([[1.0, -1.0]]), torch.tensor([0.5, -0.5]))
spec = TosaCompileSpec("TOSA-1.0+INT")
config = get_symmetric_quantization_config()
prepared = prepare_pt2e(
    torch.export.export(Model().eval(), inputs).module(check_guards=False),
    TOSAQuantizer(spec).set_global(config).set_io(config),
)
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
try:
    to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    if "bias" not in message:  # before 1.4.1 lowering stops elsewhere
        print(f"not reproduced: {message}")
        sys.exit(0)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
