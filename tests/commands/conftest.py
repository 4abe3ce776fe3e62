"""What several commands read."""

from tests.unit.programs.conftest import folder

__all__ = ["folder"]
