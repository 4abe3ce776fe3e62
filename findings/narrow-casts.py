"""TOSA-1.0+FP: a cast from float32 to int8 rounds to the nearest integer instead of cutting off."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class ToInt8(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.int8)


x = torch.tensor([-1.7, -0.6, 0.6, 1.7])
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(ToInt8(), (x,)), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy()],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected = ToInt8()(x).tolist()
    if given[0].tolist() != expected:
        print(f"eager gives {expected}, TOSA gives {given[0].tolist()}")
        sys.exit(1)
print("not reproduced")
