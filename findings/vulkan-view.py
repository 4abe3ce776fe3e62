"""Vulkan: a weight that is a part of a larger tensor is serialized as the first bytes of that."""

import struct
import sys

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower


class Tail(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.arange(8.0).reshape(4, 2)[2:])

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight)


model = Tail().eval()
program = to_edge_transform_and_lower(
    torch.export.export(model, (torch.ones(1, 2),)), partitioner=[VulkanPartitioner()]
)
delegate = program.exported_program().graph_module.lowered_module_0
(stored,) = (getattr(each, "buffer", each) for each in delegate.named_data_store_output.buffers)
expected = model.weight.flatten().tolist()
got = list(struct.unpack_from("<4f", stored))
if got != expected:
    print(f"the weight is {expected}, the delegate has {got} of {len(stored)} bytes")
    sys.exit(1)
print("not reproduced")
