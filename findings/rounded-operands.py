"""TOSA-1.0+INT: the operands of a maximum are rounded to the smaller of their scales before the result is."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.delegate import executorch_call_delegate
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Larger(torch.nn.Module):
    def forward(self, x, y):
        return torch.maximum(x, y)


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


spec = TosaCompileSpec("TOSA-1.0+INT")
config = get_symmetric_quantization_config()
quantizer = TOSAQuantizer(spec)
quantizer.set_global(config)
quantizer.set_io(config)
# Two ranges, so that there are two scales.
inputs = (torch.linspace(-1.0, 1.0, 256), torch.linspace(0.0, -0.6, 256))
prepared = prepare_pt2e(torch.export.export(Larger(), inputs).module(check_guards=False), quantizer)
prepared(*inputs)
converted = convert_pt2e(prepared)
edge = to_edge_transform_and_lower(
    torch.export.export(converted, inputs), partitioner=[TOSAPartitioner(spec)]
)
(given,) = InReferenceModel(edge.exported_program().graph_module).run(*inputs)
expected = converted(*inputs)
if off := int((given - expected).abs().gt(1e-4).sum()):
    step = expected.unique().diff().min()
    print(
        f"{off} of {expected.numel()} outputs are off, by {(given - expected).abs().max() / step:.0f} step of int8"
    )
    sys.exit(1)
print("not reproduced")
