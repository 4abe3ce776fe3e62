"""A value that the program returns is overwritten where the reinplace pass runs."""

import sys

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Model(torch.nn.Module):
    def forward(self, x):
        doubled = x * 2.0
        return doubled, torch.ops.aten.index_put.default(doubled, [torch.tensor([1])], x[:1])


x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
config = ExecutorchBackendConfig(run_reinplace_pass=True)
pte = to_edge(torch.export.export(Model(), (x,))).to_executorch(config).buffer
given = _load_for_executorch_from_buffer(pte).run_method("forward", (x,))[0]
eager = Model()(x)[0]
if not torch.equal(given, eager):
    print(f"eager gives {eager.tolist()}, the runtime {given.tolist()}")
    sys.exit(1)
print("not reproduced")
