"""What an operator in place gives is overwritten before its last reader."""

import sys

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Model(torch.nn.Module):
    def forward(self, x):
        put = torch.ops.aten.index_put.default(x * 2.0, [torch.tensor([1, 0])], x)
        return (x * 3.0).cumsum(1) + put


x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
config = ExecutorchBackendConfig(run_reinplace_pass=True)
pte = to_edge(torch.export.export(Model(), (x,))).to_executorch(config).buffer
given = _load_for_executorch_from_buffer(pte).run_method("forward", (x,))[0]
eager = Model()(x)
if not torch.allclose(given, eager):
    print(f"eager gives {eager.tolist()}, the runtime {given.tolist()}")
    sys.exit(1)
print("not reproduced")
