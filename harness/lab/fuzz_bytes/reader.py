"""Readers of untrusted files, and the real files that mutations start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import REPOSITORY

HERE = Path(__file__).resolve().parent
DATA = REPOSITORY / "tests" / "data"
PAYLOADS = DATA / "decode"


@dataclass(frozen=True)
class Reader:
    """A reader.

    Attributes
    ----------
    seeds
        Returns real files.
    read
        Reads one file, given by its bytes, in a folder that it may use.
    declared
        Its declared exceptions.
    is_text
        Whether what it reads is text.
    """

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]
    declared: tuple[type[Exception], ...]
    is_text: bool = True


def files(*patterns: str, under: Path = PAYLOADS) -> list[bytes]:
    """Return the files that match one of `patterns`."""
    return [path.read_bytes() for pattern in patterns for path in sorted(under.glob(pattern))]


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
