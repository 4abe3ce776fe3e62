"""TOSA: a number beside a tensor without dimensions gives the delegate's output a dimension too many."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Model(torch.nn.Module):
    def forward(self, x):
        return (x + 1.5).unsqueeze(0)


x = torch.tensor(1.0)
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
    expected = list(Model()(x).shape)
    if list(given[0].shape) != expected:
        print(f"the graph has an output of shape {expected}, the delegate's is {list(given[0].shape)}")
        sys.exit(1)
print("not reproduced")
