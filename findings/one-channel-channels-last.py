"""XNNPACK: the runtime refuses a channels-last input that has one channel."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

x = torch.ones(1, 1, 3, 2).to(memory_format=torch.channels_last)
program = torch.export.export(torch.nn.Conv2d(1, 1, 1).eval(), (x,))
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
try:
    runtime.run_method("forward", (x,))
except RuntimeError as error:
    print(error)
    sys.exit(1)
print("not reproduced")
