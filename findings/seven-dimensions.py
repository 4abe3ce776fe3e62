"""XNNPACK: an operator of seven dimensions lowers to a delegate that the runtime refuses."""

import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


class Windows(torch.nn.Module):
    """Of a video's frames, rows and columns, as Swin transformers take them; seven dimensions without the batch."""

    def forward(self, x):
        return x.view(2, 2, 2, 2, 2, 2, 3).permute(0, 2, 4, 1, 3, 5, 6).reshape(8, 8, 3)


inputs = (torch.arange(192.0).reshape(4, 4, 4, 3),)
program = torch.export.export(Windows(), inputs)
pte = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
try:
    runtime = _load_for_executorch_from_buffer(pte)
    given = runtime.run_method("forward", inputs)[0]
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
if not torch.equal(given, Windows()(*inputs)):
    print("the runtime gives other values than eager")
    sys.exit(1)
print("not reproduced")
