"""TOSA: a bilinear interpolation by a scale factor, of a size that it does not divide, is one by another factor."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Halved(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.interpolate(x, scale_factor=0.5, mode="bilinear")


x = torch.arange(25.0).reshape(1, 1, 5, 5)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(Halved(), (x,)), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy()],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    eager = Halved()(x)
    if not torch.allclose(eager, torch.tensor(given[0]), atol=1e-4):
        print(f"eager gives {eager.tolist()}, TOSA gives {given[0].tolist()}")
        sys.exit(1)
print("not reproduced")
