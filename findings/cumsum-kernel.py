"""TOSA-1.0+INT: a cumulative sum of a table or of a cumulative sum stops lowering."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(torch.nn.Module):
    def __init__(self, before):
        super().__init__()
        self.before = before

    def forward(self, x):
        return torch.cumsum(self.before(x), 1)


class Cumsum(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 2)


def lower(model, inputs):
    spec = TosaCompileSpec("TOSA-1.0+INT")
    config = get_symmetric_quantization_config()
    quantizer = TOSAQuantizer(spec)
    quantizer.set_global(config)
    quantizer.set_io(config)
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    program = torch.export.export(convert_pt2e(prepared), inputs)
    to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])


inputs = (torch.linspace(-1.0, 1.0, 24).reshape(2, 3, 4),)
said = []
for before in (Cumsum(), torch.nn.Tanh()):
    try:
        lower(Model(before).eval(), inputs)
    except Exception as error:
        while error.__cause__:
            error = error.__cause__
        message = next(line for line in str(error).splitlines() if line)
        said.append(f"{type(before).__name__}: {type(error).__name__}: {message}")
print("; ".join(said) or "not reproduced")
sys.exit(1 if said else 0)
