"""Queries git about a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path


def output(folder: Path, *words: str) -> bytes | None:
    """Return git's output in a folder; None where git, the checkout or the object is missing."""
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
