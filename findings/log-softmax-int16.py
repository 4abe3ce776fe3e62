"""TOSA-1.0+INT+int16: log_softmax is far off where the probability is small."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_a16w8_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.delegate import executorch_call_delegate
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=-1)


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


inputs = (torch.tensor([[-3.5, -2.0, 0.0]]),)
spec = TosaCompileSpec("TOSA-1.0+INT+int16")
config = get_symmetric_a16w8_quantization_config()
prepared = prepare_pt2e(
    torch.export.export(Model(), inputs).module(check_guards=False),
    TOSAQuantizer(spec).set_global(config).set_io(config),
)
prepared(*inputs)
converted = convert_pt2e(prepared)
edge = to_edge_transform_and_lower(
    torch.export.export(converted, inputs), partitioner=[TOSAPartitioner(spec)]
)
given = InReferenceModel(edge.exported_program().graph_module).run(*inputs)
a, (b,) = converted(*inputs), given
if (a - b).abs().max() > 0.01:
    print(f"quantized eager gives {a.tolist()}, TOSA gives {b.tolist()}")
    sys.exit(1)
print("not reproduced")
