"""XNNPACK: a transposed convolution whose output padding is not below its stride does not run."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

# PyTorch wants it below the stride or the dilation.
model = torch.nn.ConvTranspose2d(1, 1, 2, dilation=2, output_padding=1).eval()
inputs = (torch.ones(1, 1, 3, 3),)
program = torch.export.export(model, inputs)
pte = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
runtime = _load_for_executorch_from_buffer(pte)
try:
    given = runtime.run_method("forward", inputs)[0]
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
if not torch.allclose(given, model(*inputs), atol=1e-5):
    print(f"eager {model(*inputs).tolist()}, runtime {given.tolist()}")
    sys.exit(1)
print("not reproduced")
