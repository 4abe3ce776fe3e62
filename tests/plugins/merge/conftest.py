"""Results under review."""

from tests.commands.review.conftest import proposed, proposing, renaming, review

__all__ = ["proposed", "proposing", "renaming", "review"]
