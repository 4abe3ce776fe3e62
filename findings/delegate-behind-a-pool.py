"""XNNPACK: what reads a channels-last average pooling that stays outside takes its result for channels-last."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class PoolAndSum(torch.nn.Module):
    def forward(self, x, y):
        return torch.nn.functional.adaptive_avg_pool2d(x, (2, 2)) + y


x = torch.arange(8.0).reshape(1, 2, 2, 2)  # the pooling changes nothing
inputs = (x.to(memory_format=torch.channels_last), x)
program = torch.export.export(PoolAndSum(), inputs)
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
try:
    (given,) = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
except RuntimeError as error:
    print(f"not reproduced: {error}")
    sys.exit()
expected = PoolAndSum()(*inputs)
if not torch.equal(given, expected):
    print(f"eager {expected.flatten().tolist()}, runtime {given.flatten().tolist()}")
    sys.exit(1)
print("not reproduced")
