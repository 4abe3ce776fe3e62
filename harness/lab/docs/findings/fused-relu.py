"""TOSA-1.0+INT: a ReLU after a convolution is left out where a concatenation shares its quantization."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.delegate import executorch_call_delegate
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(1, 1, 1)
        self.layer.weight.data.fill_(1.0)
        self.layer.bias.data.fill_(0.0)

    def forward(self, x):
        return torch.cat((x, torch.relu(self.layer(x))))


class InReferenceModel(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        if target is not executorch_call_delegate:
            return super().call_function(target, args, kwargs)
        given, _ = tosa_reference_model.run(
            args[0].processed_bytes,
            [x.numpy() for x in args[1:]],
            verbosity="LOW",
            initialize_variable_tensor_from_numpy=True,
            debug_mode=None,
        )
        return [torch.tensor(y) for y in given]


inputs = (torch.tensor([-1.0, -0.5, 0.5, 1.0]).reshape(1, 1, 2, 2),)
spec = TosaCompileSpec("TOSA-1.0+INT")
config = get_symmetric_quantization_config()
prepared = prepare_pt2e(
    torch.export.export(Model(), inputs).module(check_guards=False),
    TOSAQuantizer(spec).set_global(config).set_io(config),
)
prepared(*inputs)
converted = convert_pt2e(prepared)
edge = to_edge_transform_and_lower(
    torch.export.export(converted, inputs), partitioner=[TOSAPartitioner(spec)]
)
program = edge.exported_program()
if len(program.graph_signature.input_specs) > len(inputs):
    print("not reproduced: the convolution is left outside of the delegate")
    sys.exit(0)
(given,) = InReferenceModel(program.graph_module).run(*inputs)
expected, given = (x[1].flatten().tolist() for x in (converted(*inputs), given))
if max(abs(a - b) for a, b in zip(expected, given, strict=True)) > 0.1:
    print(f"quantized eager gives {expected}, TOSA gives {given}")
    sys.exit(1)
print("not reproduced")
