"""TOSA with shapes: a max pool of a symbolic height stops lowering."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

rows = 2 * torch.export.Dim("rows", min=2, max=6)
program = torch.export.export(torch.nn.MaxPool2d(2), (torch.ones(1, 3, 8, 6),), dynamic_shapes=({2: rows},))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.1+FP+shape"))
unchecked = EdgeCompileConfig(_check_ir_validity=False)
try:
    to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=unchecked)
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    print(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}")
    sys.exit(1)
print("not reproduced")
