"""Portable kernels: nonzero writes its places in rows into a result whose strides are those of columns."""

import sys

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes.sym_shape_eval_pass import HintBasedSymShapeEvalPass
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nonzero(x)


x = torch.eye(3, 4)
config = ExecutorchBackendConfig(sym_shape_eval_pass=HintBasedSymShapeEvalPass())
pte = to_edge(torch.export.export(Model(), (x,))).to_executorch(config).buffer
given = _load_for_executorch_from_buffer(pte).run_method("forward", (x,))[0]
eager = Model()(x)
if not torch.equal(given, eager):
    print(f"eager gives {eager.tolist()}, the runtime {given.tolist()}")
    sys.exit(1)
print("not reproduced")
