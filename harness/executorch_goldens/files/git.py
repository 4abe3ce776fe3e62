"""Queries git about a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path


def output(folder: Path, *words: str) -> bytes | None:
    """Return what git prints in a folder; None where there is no git, no checkout, or nothing of what was asked for."""
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
