"""Vulkan: an input that passes leave without a user is none of the delegate's, and the program still gives it."""

import sys

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
    extract_vk_flatbuffer,
    flatbuffer_to_vk_graph,
)
from executorch.exir import to_edge_transform_and_lower


class Overwritten(torch.nn.Module):
    def forward(self, x, y):
        return torch.ops.aten.copy(x, y) + 1.0


example = (torch.zeros(2, 3), torch.ones(2, 3))
program = to_edge_transform_and_lower(
    torch.export.export(Overwritten().eval(), example), partitioner=[VulkanPartitioner()]
)
delegate = program.exported_program().graph_module.lowered_module_0
graph = flatbuffer_to_vk_graph(extract_vk_flatbuffer(delegate.processed_bytes))
given = delegate.original_module.graph_signature.user_inputs
if len(graph.input_ids) != len(given):
    print(f"the program gives {list(given)}, the delegate takes {len(graph.input_ids)} input")
    sys.exit(1)
print("not reproduced")
