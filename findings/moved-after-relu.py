"""TOSA INT: a ReLU whose result is moved by movedim comes out shifted and scaled."""

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
    def forward(self, x):
        return torch.relu(x).movedim(0, 1)


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


inputs = (torch.tensor([[-1.0, 0.5], [0.0, 1.0]]),)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec).set_global(get_symmetric_quantization_config())
prepared = prepare_pt2e(torch.export.export(Model(), inputs).module(check_guards=False), quantizer)
prepared(*inputs)
converted = convert_pt2e(prepared)
edge = to_edge_transform_and_lower(
    torch.export.export(converted, inputs), partitioner=[TOSAPartitioner(spec)]
)
given = InReferenceModel(edge.exported_program().graph_module).run(*inputs)[0]
expected = converted(*inputs)
if (expected - given).abs().max() > 0.1:
    print(f"quantized eager gives {expected.tolist()}, TOSA gives {given.tolist()}")
    sys.exit(1)
print("not reproduced")
