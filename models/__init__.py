"""The model zoo: importing this package registers every case, family by family."""

from models import cat, layers, neighbours, networks, outputs, partitions, permute
from models.registry import CASES, Case, Data, Example, case

__all__ = [
    "CASES",
    "Case",
    "Data",
    "Example",
    "case",
    "cat",
    "layers",
    "neighbours",
    "networks",
    "outputs",
    "partitions",
    "permute",
]
