"""What the targets name; imported in exporting processes only."""

from typing import Any

from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner


def partitioner() -> Any:
    return VulkanPartitioner()
