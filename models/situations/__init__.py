"""Situations in which passes of upstream's went wrong, a family of small models each; ``guards`` has the pull requests.

The fixes were taken back, each on the cases that name it: harness/lab/docs/history.md. Those of `limits` are of wrong
edits that nobody published.
"""

from models.situations import (
    branching,
    chains,
    conditions,
    constants,
    dynamic_batches,
    edges,
    float_types,
    idle_partitions,
    in_place,
    kernels,
    last_dimensions,
    limits,
    memory_layouts,
    resizes,
    scales,
    shared_inputs,
    spellings,
    states,
    symbolic_sizes,
    u55_limits,
    ways,
)

__all__ = [
    "branching",
    "chains",
    "conditions",
    "constants",
    "dynamic_batches",
    "edges",
    "float_types",
    "idle_partitions",
    "in_place",
    "kernels",
    "last_dimensions",
    "limits",
    "memory_layouts",
    "resizes",
    "scales",
    "shared_inputs",
    "spellings",
    "states",
    "symbolic_sizes",
    "u55_limits",
    "ways",
]
