"""Digests of the files of packages, as their installer wrote them down.

An installer that links files, as uv does, changes the time of a file of every environment when it makes or deletes
one. Format of ``*.dist-info/RECORD``: https://packaging.python.org/specifications/recording-installed-packages/
"""

# ruff: noqa: PTH118
# Tens of thousands of paths: as text.
from __future__ import annotations

import base64
import binascii
import csv
import os
from collections.abc import Iterator
from pathlib import Path

#: The folders that packages are installed in.
FOLDERS = ("/site-packages/", "/dist-packages/")
#: The file of a package's metadata that lists its files.
RECORD = "RECORD"
#: How the digest of a file is written, before its base64.
PREFIX = "sha256="


class Installed:
    """What the packages that some files belong to recorded about them."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, tuple[str, str]]] = {}

    def recorded(self, file: str) -> tuple[str, str] | None:
        """Return the path of the RECORD that has `file`, and the SHA-256 there, in hexadecimal; None without one."""
        for name in FOLDERS:
            before, found, _ = file.rpartition(name)
            if found:
                folder = before + name.rstrip("/")
                if folder not in self._folders:
                    self._folders[folder] = dict(_records(folder))
                return self._folders[folder].get(file)
        return None


def _records(folder: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each file that a package in `folder` recorded, with its RECORD and its digest."""
    for record in sorted(Path(folder).glob(f"*.dist-info/{RECORD}")):
        try:
            rows = list(csv.reader(record.read_text(encoding="utf-8").splitlines()))
        except (OSError, UnicodeDecodeError, csv.Error):
            continue
        for row in rows:
            if len(row) == 3 and row[1].startswith(PREFIX):
                encoded = row[1].removeprefix(PREFIX)
                try:
                    digest = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
                except (binascii.Error, ValueError):
                    continue
                yield os.path.normpath(os.path.join(folder, row[0])), (str(record), digest)
