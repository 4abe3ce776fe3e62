"""The model zoo: importing this package registers every case."""

from models import partitions
from models.registry import CASES, Case, Data, Example, case

__all__ = ["CASES", "Case", "Data", "Example", "case", "partitions"]
