"""Functions of a target of one's own that are mistaken."""

from __future__ import annotations

from typing import Any


def raising() -> Any:
    """Raise in its own file."""
    return {}["the partitioner that this firm forgot"]


def listed() -> Any:
    """Return a list with the attributes that ExecuTorch asks of a partitioner."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return [[XnnpackPartitioner()]]


def mistaken() -> Any:
    """Return a partitioner that gives nothing."""
    from executorch.exir.backend.partitioner import Partitioner

    class Mistaken(Partitioner):
        def partition(self, exported_program: Any) -> Any:
            return None

    return Mistaken()
