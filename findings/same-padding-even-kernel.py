"""TOSA-1.0+INT: the delegate of a padding="same", even-kernel convolution gives int8 where float32 is declared."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

x = torch.ones(1, 1, 4, 1)
spec = TosaCompileSpec("TOSA-1.0+INT")
config = get_symmetric_quantization_config()
model = torch.export.export(torch.nn.Conv2d(1, 1, (2, 1), padding="same").eval(), (x,))
prepared = prepare_pt2e(
    model.module(check_guards=False), TOSAQuantizer(spec).set_global(config).set_io(config)
)
prepared(x)
program = torch.export.export(convert_pt2e(prepared), (x,))
try:
    edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)]).exported_program()
except ValueError as error:  # 1.1.0 does not come this far
    print(f"not reproduced: {error}")
    sys.exit(0)
if delegate := getattr(edge.graph_module, "lowered_module_0", None):
    codes = torch.zeros(1, 1, 4, 1, dtype=torch.int8).numpy()
    (given,), _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [codes],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    declared = delegate.original_module.graph.output_node().args[0][0].meta["val"].dtype
    if str(given.dtype) != str(declared).removeprefix("torch."):
        print(f"the delegate gives {given.dtype}, the program takes its output for {declared}")
        sys.exit(1)
print("not reproduced")
