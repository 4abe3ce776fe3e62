"""Where this project's own goldens stand."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

#: Root of the goldens: a directory per release.
GOLDENS = REPOSITORY / "goldens"
