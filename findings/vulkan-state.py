"""Vulkan: a delegate that keeps a state gives the new state as an output that the program does not take."""

import sys

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
    extract_vk_flatbuffer,
    flatbuffer_to_vk_graph,
)
from executorch.exir import to_edge_transform_and_lower


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2, 3))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2.0


program = to_edge_transform_and_lower(
    torch.export.export(Sum().eval(), (torch.ones(2, 3),)), partitioner=[VulkanPartitioner()]
)
delegate = program.exported_program().graph_module.lowered_module_0
graph = flatbuffer_to_vk_graph(extract_vk_flatbuffer(delegate.processed_bytes))
gives = [[call.name for call in graph.chain if call.args[-1] == value] for value in graph.output_ids]
taken = delegate.original_module.graph_signature.user_outputs
if len(gives) != len(taken):
    print(f"the delegate gives {[name for (name,) in gives]}, the program takes {len(taken)} output")
    sys.exit(1)
print("not reproduced")
