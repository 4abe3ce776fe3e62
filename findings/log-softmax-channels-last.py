"""Optimized kernels: log_softmax reads a channels-last input as if it were contiguous."""

import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class LogSoftmax(torch.nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, 3)


x = torch.tensor([[[[0.0, 1.0]], [[2.0, 5.0]]]]).to(memory_format=torch.channels_last)
lowered = to_edge_transform_and_lower(torch.export.export(LogSoftmax(), (x,)))
pte = lowered.to_executorch().buffer  # the runtime does not keep it
runtime = _load_for_executorch_from_buffer(pte)
expected = [round(value, 2) for value in LogSoftmax()(x).flatten().tolist()]
given = [round(value, 2) for value in runtime.run_method("forward", (x,))[0].flatten().tolist()]
if given != expected:
    print(f"eager gives {expected}, the runtime gives {given}")
    sys.exit(1)
print("not reproduced")
