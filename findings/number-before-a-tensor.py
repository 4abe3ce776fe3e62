"""TOSA: a number minus a tensor, transposed, comes out untransposed."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return (1 - x).t()


x = torch.arange(4.0).reshape(2, 2)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(Model(), (x,)), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy()],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected = Model()(x).tolist()
    if given[0].tolist() != expected:
        print(f"eager gives {expected}, TOSA gives {given[0].tolist()}")
        sys.exit(1)
print("not reproduced")
