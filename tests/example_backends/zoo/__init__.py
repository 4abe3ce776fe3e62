"""The models that show the two backends."""

from zoo import cortex_m, vulkan

__all__ = ["cortex_m", "vulkan"]
