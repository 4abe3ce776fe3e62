"""TOSA: index_put with a repeated index becomes a SCATTER that TOSA leaves undefined."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Accumulate(torch.nn.Module):
    def forward(self, x, rows, y):
        return torch.index_put(x, (rows,), y, accumulate=True)


inputs = (torch.zeros(3, 2), torch.tensor([1, 1], dtype=torch.int32), torch.ones(2, 2))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Accumulate(), inputs)
module = to_edge_transform_and_lower(program, partitioner=[partitioner]).exported_program().graph_module
if delegate := getattr(module, "lowered_module_0", None):
    given, status = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy() for x in inputs],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected = Accumulate()(*inputs).tolist()
    if status != tosa_reference_model.GraphStatus.TOSA_VALID or given[0].tolist() != expected:
        print(f"eager gives {expected}, the TOSA reference model says {status.name}")
        sys.exit(1)
print("not reproduced")
