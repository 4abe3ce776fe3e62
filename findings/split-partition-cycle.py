"""TOSA-1.0+INT: a partition that lost its middle, but whose ends are joined, stops lowering."""

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
        self.register_buffer("table", torch.zeros(4, 6))
        self.first = torch.nn.Linear(6, 6)
        self.last = torch.nn.Linear(6, 6)

    def forward(self, x, row):
        y = self.first(x)
        self.table[row] = y[:1]
        return self.last(self.table) + y


inputs = (torch.ones(4, 6), torch.tensor([2]))
spec = TosaCompileSpec("TOSA-1.0+INT")
config = get_symmetric_quantization_config()
prepared = prepare_pt2e(
    torch.export.export(Model().eval(), inputs).module(check_guards=False),
    TOSAQuantizer(spec).set_global(config).set_io(config),
)
try:
    prepared(*inputs)
except (AssertionError, NotImplementedError) as error:  # before 1.4.1 the quantizer observes the int64 index
    print(f"not reproduced: {error}")
    sys.exit(0)
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
