"""TOSA: the payload of a slice with a symbolic dimension holds memory addresses, others at each export."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Slices(torch.nn.Module):
    def forward(self, x):
        return x[:, 1:3] + x[:, 2:4]


exported = torch.export.export(
    Slices(), (torch.rand(4, 5),), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=8)},)
)


def payload():
    """Return the payload of the delegate, or nothing where there is none."""
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    edge = to_edge_transform_and_lower(exported, partitioner=[partitioner])
    delegate = getattr(edge.exported_program().graph_module, "lowered_module_0", None)
    return delegate.processed_bytes if delegate else b""


one, other = payload(), payload()
# The sizes of a slice are int64 there.
for place in range(4, len(one), 8):
    if one[place : place + 8] != other[place : place + 8]:
        found = (int.from_bytes(each[place : place + 8], "little") for each in (one, other))
        print("once {}, once {}".format(*found))
        sys.exit(1)
print("not reproduced")
