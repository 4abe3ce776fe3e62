"""TOSA: an amax without dimensions, with keepdim, gives back its input."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Largest(torch.nn.Module):
    def forward(self, x):
        return torch.amax(x, dim=(), keepdim=True)


x = torch.tensor([[1.0, 2.0, 3.0]])
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(Largest(), (x,)), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy()],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected, actual = Largest()(x).tolist(), given[0].tolist()
    if actual != expected:
        print(f"eager gives {expected}, TOSA gives {actual}")
        sys.exit(1)
print("not reproduced")
