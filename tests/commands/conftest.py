"""The browser that shows pages of commands."""

from tests.support.browsing import browser

__all__ = ["browser"]
