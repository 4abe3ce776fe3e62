"""Queries git about a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path


def output(folder: Path, *words: str) -> bytes:
    """Return git's output in a folder; empty where git, the checkout or the object is missing."""
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""


def names(folder: Path, *words: str) -> list[str]:
    """Return the names of files that git lists in a folder, each ended by a zero byte (``-z``)."""
    listed = output(folder, *words).decode(errors="surrogateescape")
    return [name for name in listed.split("\0") if name]
