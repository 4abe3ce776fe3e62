"""TOSA: a delegate declares an input that its payload does not take."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Replaced(torch.nn.Module):
    def forward(self, x, y):
        return x.copy_(y)


inputs = (torch.zeros(2, 3), torch.ones(2, 3))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Replaced(), tuple(x.clone() for x in inputs))
edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    call = next(
        node for node in edge.exported_program().graph.nodes if "executorch_call_delegate" in node.name
    )
    try:
        tosa_reference_model.run(
            delegate.processed_bytes,
            [x.numpy() for x in inputs[: len(call.args) - 1]],
            verbosity="LOW",
            initialize_variable_tensor_from_numpy=True,
            debug_mode=None,
        )
    except ValueError as error:
        print(f"the delegate is given {len(call.args) - 1} tensors; the TOSA reference model says: {error}")
        sys.exit(1)
print("not reproduced")
