"""Portable kernels: a sum over dimension 0 of a tensor without dimensions ends the process."""

import os
import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Sum(torch.nn.Module):
    def forward(self, x):
        return x.sum(0)


inputs = (torch.tensor(-8.5),)
pte = to_edge_transform_and_lower(torch.export.export(Sum(), inputs)).to_executorch().buffer
if (child := os.fork()) == 0:
    _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
    os._exit(0)
_, status = os.waitpid(child, 0)
if os.WIFSIGNALED(status):
    print(f"the process that runs the program is ended by signal {os.WTERMSIG(status)}")
    sys.exit(1)
print("not reproduced")
