"""XNNPACK: a permutation of a tensor without dimensions lowers to a delegate that the runtime refuses."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Permuted(torch.nn.Module):
    def forward(self, x):
        return x.sum().permute(())


inputs = (torch.ones(2, 3),)
program = torch.export.export(Permuted(), inputs)
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
try:
    runtime.run_method("forward", inputs)
except RuntimeError as error:
    print(error)
    sys.exit(1)
print("not reproduced")
