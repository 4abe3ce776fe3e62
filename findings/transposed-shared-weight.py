"""XNNPACK: a program whose linear layer shares its weight with a transpose dies when it is loaded from a file."""

import pathlib
import signal
import subprocess
import sys
import tempfile

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

RUN = """
import sys
import torch
from executorch.extension.pybindings.portable_lib import _load_for_executorch
_load_for_executorch(sys.argv[1]).run_method("forward", (torch.ones(2, 8),))
"""


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(8, 64, bias=False)

    def forward(self, x):
        return torch.nn.functional.linear(self.encoder(x), self.encoder.weight.t())


lowered = to_edge_transform_and_lower(
    torch.export.export(Tied().eval(), (torch.ones(2, 8),)), partitioner=[XnnpackPartitioner()]
)
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "tied.pte")
    file.write_bytes(lowered.to_executorch().buffer)
    code = subprocess.run([sys.executable, "-c", RUN, file], stderr=subprocess.DEVNULL).returncode
if code < 0:
    print(f"killed by {signal.Signals(-code).name}")
    sys.exit(1)
print("not reproduced")
