"""TOSA: a replicate pad by a negative amount does not cut off."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Crop(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.pad(x, (-1, 1, -2, 1), "replicate")


x = torch.arange(48.0).reshape(1, 3, 4, 4)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(Crop(), (x,)), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy()],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected = Crop()(x)
    if given[0].shape != expected.shape or (given[0] != expected.numpy()).any():
        print(f"eager gives a shape of {list(expected.shape)}, TOSA gives {list(given[0].shape)}")
        sys.exit(1)
print("not reproduced")
