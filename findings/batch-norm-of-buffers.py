"""TOSA: the factors of a batch norm are left out where they are buffers."""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class FrozenNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("var", torch.ones(2))
        self.register_buffer("weight", torch.tensor([2.0, 4.0]))
        self.register_buffer("bias", torch.tensor([0.0, 8.0]))

    def forward(self, x):
        return torch.nn.functional.batch_norm(x, self.mean, self.var, self.weight, self.bias)


x = torch.ones(1, 2, 1, 1)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(FrozenNorm(), (x,)), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    given, _ = tosa_reference_model.run(
        delegate.processed_bytes,
        [x.numpy()],
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    expected, actual = (
        [round(value, 3) for value in y.flatten().tolist()] for y in (FrozenNorm()(x), given[0])
    )
    if actual != expected:
        print(f"eager gives {expected}, TOSA gives {actual}")
        sys.exit(1)
print("not reproduced")
