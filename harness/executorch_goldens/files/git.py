"""Queries git about a checkout."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path


def output(folder: Path, *words: str, given: bytes = b"") -> bytes:
    """Return git's output in a folder; empty where git, the checkout or the object is missing."""
    command = ["git", "-C", str(folder), *words]
    try:
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""


def text(folder: Path, *words: str) -> str:
    """Return git's output as `output` does, without the space around it."""
    return output(folder, *words).decode().strip()


def names(folder: Path, *words: str) -> list[str]:
    """Return the names of files that git lists in a folder, each ended by a zero byte (``-z``)."""
    listed = output(folder, *words).decode(errors="surrogateescape")
    return [name for name in listed.split("\0") if name]


def blob_name(content: bytes, digits: int) -> str:
    r"""Return the name that git gives a file's content, in a repository whose names have 40 or 64 digits.

    >>> blob_name(b"hello\n", 40)
    'ce013625030ba8dba906f756967f9e9ca394464a'
    """
    method = hashlib.sha1 if digits == 40 else hashlib.sha256
    return method(b"blob %d\0" % len(content) + content).hexdigest()


def blobs(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of blobs, by name; those that git does not have are left out."""
    found: dict[str, bytes] = {}
    asked = "".join(f"{name}\n" for name in dict.fromkeys(names)).encode()
    answer, at = output(folder, "cat-file", "--batch", given=asked) if names else b"", 0
    while at < len(answer):
        line = answer[at : (end := answer.index(b"\n", at))].decode().split()
        at = end + 1
        if len(line) == 3:
            found[line[0]] = answer[at : at + int(line[2])]
            at += int(line[2]) + 1
    return found
