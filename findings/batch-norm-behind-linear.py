"""XNNPACK, a batch norm after a linear layer is applied to the last dimension instead of the channels."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class LinearAndNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2, bias=False)
        self.linear.weight.data = torch.eye(2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.norm.running_mean = torch.tensor([0.0, 8.0])

    def forward(self, x):
        return self.norm(self.linear(x))


model = LinearAndNorm().eval()
x = torch.arange(4.0).reshape(1, 2, 2)  # a batch, two channels, a length of two
lowered = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
(given,) = _load_for_executorch_from_buffer(pte).run_method("forward", (x,))
expected = model(x).detach()
if not torch.allclose(given, expected, atol=0.01):
    print(f"eager {expected.round().tolist()}, runtime {given.round().tolist()}")
    sys.exit(1)
print("not reproduced")
