"""The browser that shows reports, and results under review."""

from tests.commands.review.conftest import proposed, proposing, review
from tests.support.browsing import browser

__all__ = ["browser", "proposed", "proposing", "review"]
