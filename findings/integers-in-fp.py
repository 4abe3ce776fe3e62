"""TOSA FP: integer operators that only the INT profile has are lowered."""

import importlib.metadata
import subprocess
import sys
import tempfile

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import get_lowered_submodules


class Shift(torch.nn.Module):
    def forward(self, x):
        return x >> 1


program = to_edge_transform_and_lower(
    torch.export.export(Shift(), (torch.ones(2, 2, dtype=torch.int32),)),
    partitioner=[TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))],
    compile_config=EdgeCompileConfig(_check_ir_validity=False),
).exported_program()
passes = (
    "tosa-deserialize,tosa-attach-target{profiles=pro_fp level=8k specification_version=1.0},"
    "tosa-validate{strict-op-spec-alignment}"
)
tool = importlib.metadata.distribution("tosa-tools").locate_file("bin/tosa-opt")
for _, delegate, _ in get_lowered_submodules(program.graph_module):
    with tempfile.NamedTemporaryFile(suffix=".tosa") as file:
        file.write(delegate.processed_bytes)
        file.flush()
        options = [f"--tosa-deserialize-filename={file.name}", f"--pass-pipeline=builtin.module({passes})"]
        run = subprocess.run([tool, "/dev/null", *options], capture_output=True, text=True)
    for line in run.stderr.splitlines():
        if "error: 'tosa." in line:
            print(line.partition("error: ")[2])
            sys.exit(1)
print("not reproduced")
