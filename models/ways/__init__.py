"""Ways to lower that few programs take: no run exports them, and they have no goldens. A comparison and a search do.

A package of its own, which `models` does not import: passes of a user's own, block-scaled floats, delegates made by
hand, quantized branches, settings of quantizers.
"""

from models.ways import by_hand, exir_ways, further, inserted_passes, settings, tosa_ways

__all__ = ["by_hand", "exir_ways", "further", "inserted_passes", "settings", "tosa_ways"]
