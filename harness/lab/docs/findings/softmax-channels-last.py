"""XNNPACK: a softmax over the width of what a pooling or a convolution gives is one over the channels."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

model = torch.nn.Sequential(torch.nn.MaxPool2d(1), torch.nn.Softmax(-1)).eval()
inputs = (torch.zeros(1, 2, 1, 4),)
lowered = to_edge_transform_and_lower(torch.export.export(model, inputs), partitioner=[XnnpackPartitioner()])
pte = lowered.to_executorch().buffer  # the runtime does not keep it
(given,) = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
expected = model(*inputs)
if not torch.allclose(given, expected):
    print(f"eager {expected[0, 0, 0].tolist()}, runtime {given[0, 0, 0].tolist()}")
    sys.exit(1)
print("not reproduced")
