"""Vulkan: a delegate whose payload is a graph of operators; the wheel has no runtime for it, so a simulator runs it."""

from executorch_goldens.zoo.targets import EAGER, Target

FP32 = Target(
    name="vulkan-fp32",
    description="Vulkan, float32",
    backend="vulkan",
    runs=EAGER,
    partitioner="executorch.backends.vulkan.partitioner.vulkan_partitioner:VulkanPartitioner",
    simulator="example_backends.vulkan.simulator:run",
)
