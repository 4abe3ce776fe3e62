"""Fixtures of several commands, and the browser that shows their pages."""

from tests.support.browsing import browser
from tests.unit.programs.conftest import folder

__all__ = ["browser", "folder"]
