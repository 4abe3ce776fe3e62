"""What several commands read, and the browser that shows what they write."""

from tests.support.browsing import browser
from tests.unit.programs.conftest import folder

__all__ = ["browser", "folder"]
