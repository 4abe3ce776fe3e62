"""TOSA-1.0+FP: a power with an exponent that is a tensor becomes a POW, which takes no negative base."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Power(torch.nn.Module):
    def forward(self, x, y):
        return torch.pow(x, y)


inputs = (torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 0.0]))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(Power(), inputs), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, status = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy() for x in inputs],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected = Power()(*inputs).tolist()
    if status != tosa_reference_model.GraphStatus.TOSA_VALID or given[0].tolist() != expected:
        print(f"eager gives {expected}, the TOSA reference model says {status.name}")
        sys.exit(1)
print("not reproduced")
