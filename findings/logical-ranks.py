"""TOSA: a logical operator of two tensors with unlike numbers of dimensions becomes an invalid payload."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Or(torch.nn.Module):
    def forward(self, x, y):
        return torch.logical_or(x, y)


inputs = (torch.tensor([[True, False], [False, False]]), torch.tensor([False, True]))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(Or(), inputs), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    try:
        tosa_reference_model.run(
            delegate.processed_bytes,
            [x.numpy() for x in inputs],
            verbosity="LOW",
            initialize_variable_tensor_from_numpy=True,
            debug_mode=None,
        )
    except ValueError as error:
        print(f"ValueError: {error}")
        sys.exit(1)
print("not reproduced")
