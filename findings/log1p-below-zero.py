"""TOSA-1.0+FP: log1p of a number between -1 and 0 is six terms of its Taylor series."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class LogOnePlus(torch.nn.Module):
    def forward(self, x):
        return torch.log1p(x)


x = torch.tensor([-0.45, -0.75])
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(LogOnePlus(), (x,)), partitioner=[partitioner])
(given,), _ = tosa_reference_model.run(
    edge.exported_program().graph_module.lowered_module_0.processed_bytes,
    [x.numpy()],
    verbosity="LOW",
    initialize_variable_tensor_from_numpy=True,
    debug_mode=None,
)
expected = torch.log1p(x).tolist()
if max(abs(a - b) for a, b in zip(expected, given.tolist(), strict=True)) > 1e-4:
    print(f"eager gives {expected}, TOSA gives {given.tolist()}")
    sys.exit(1)
print("not reproduced")
