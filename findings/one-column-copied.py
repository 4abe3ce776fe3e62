"""A cast or a clone of a channels-last tensor with one channel and one column stops lowering."""

import sys

import torch
from executorch.exir import to_edge


class Cast(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.int32)


x = torch.ones(4, 1, 2, 1).to(memory_format=torch.channels_last)
try:
    to_edge(torch.export.export(Cast(), (x,)))
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
