"""Builds the firm's program as anyone would: ``python build.py FILE``; ``pinned`` after it builds it as goldens are.

``ATEN_CPU_CAPABILITY=default`` has to be set in the environment: torch reads it when it starts.
"""

import sys
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from net import net
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

if sys.argv[2:] == ["pinned"]:
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
model, inputs = net()
quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
with Path(sys.argv[1]).open("wb") as file:
    lowered.to_executorch().write_to_file(file)
