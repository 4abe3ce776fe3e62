"""TOSA with float8: a sum is taken into the delegate and stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower


class Sum(torch.nn.Module):
    def forward(self, x, y):
        return x + y


try:
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP+fp8e4m3"))
except Exception as error:
    print(f"not reproduced: {error}")
    sys.exit(0)
x = torch.ones(2, 3).to(torch.float8_e4m3fn)
program = torch.export.export(Sum(), (x, x))
try:
    to_edge_transform_and_lower(
        program,
        partitioner=[partitioner],
        # The dialect does not know operators of float8.
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"{type(error).__name__}: {message}")
    sys.exit(1)
print("not reproduced")
