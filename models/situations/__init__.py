"""Situations in which passes of upstream's went wrong, a family of small models each; ``guards`` has the pull requests.

A zoo of its own: its goldens are not recorded, and the fixes not yet taken back on it (docs/history.md).
"""

from models.situations import (
    branching,
    constants,
    edges,
    float_types,
    idle_partitions,
    in_place,
    kernels,
    memory_layouts,
    resizes,
    scales,
    spellings,
    u55_limits,
)

__all__ = [
    "branching",
    "constants",
    "edges",
    "float_types",
    "idle_partitions",
    "in_place",
    "kernels",
    "memory_layouts",
    "resizes",
    "scales",
    "spellings",
    "u55_limits",
]
