"""What proves the harness: one folder an instrument. Nothing in `executorch_goldens` imports it."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

#: Root of this project's goldens: a directory per release.
GOLDENS = REPOSITORY / "goldens"
