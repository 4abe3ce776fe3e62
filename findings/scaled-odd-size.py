"""XNNPACK: a bilinear interpolation by a scale factor, of a size that it does not divide, is one by another factor."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Halved(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.interpolate(x, scale_factor=0.5, mode="bilinear")


inputs = (torch.arange(25.0).reshape(1, 1, 5, 5),)
program = torch.export.export(Halved(), inputs)
pte = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
runtime = _load_for_executorch_from_buffer(pte)
eager, given = Halved()(*inputs), runtime.run_method("forward", inputs)[0]
if not torch.allclose(eager, given, atol=1e-4):
    print(f"eager gives {eager.tolist()}, XNNPACK gives {given.tolist()}")
    sys.exit(1)
print("not reproduced")
