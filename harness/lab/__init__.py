"""What proves the harness: one folder an instrument. Nothing in `executorch_goldens` imports it."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

#: Root of this project's goldens: a directory per release.
GOLDENS = REPOSITORY / "goldens"

#: Instruments that drive the environments of all releases, and take these as ``RELEASE=PYTHON``.
OVER_RELEASES = ("fielded", "stock")
