"""Compares the files of an environment with the digests that its packages list.

uv makes files of environments links to those of its cache: one that is edited in place is edited in every environment
that has it, and in those that are made later.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from executorch_goldens.errors import UsageError
from executorch_goldens.files.durable import ASIDE
from executorch_goldens.files.wording import some
from executorch_goldens.sweep.facts import Digests
from executorch_goldens.toolchains.installed import STACK

#: The file of a package's metadata that lists its files (Python Packaging, "Recording installed projects").
RECORD = "RECORD"
#: Its Python is compared: the rest is a gigabyte of libraries and headers.
LARGE = "torch"
#: Bytes of a file that is a copy, and no link to uv's cache: what people edit is smaller.
COPIED = 1 << 20
#: Files that a message names.
NAMED = 3


class Published(NamedTuple):
    """A file of a package: its distribution, and the SHA-256 of its content."""

    distribution: str
    digest: str


@dataclass(eq=False)
class EditedError(UsageError):
    """Files of an environment are not as they were published.

    Attributes
    ----------
    name
        The name of the environment's toolchain.
    files
        Each with its distribution.
    remedy
        Commands after which the environment is made again.
    """

    name: str
    files: Mapping[Path, str]
    remedy: str

    def __str__(self) -> str:
        what = "changed" if any(file.exists() for file in self.files) else "missing"
        return (
            f"edited: {some([str(file) for file in self.files], NAMED)}: {what} in the environment of {self.name!r}, "
            "which all repositories share. To export with an edit, lay a checkout over a release: -t 'RELEASE + DIR'. "
            f"To have the published files, type: {self.remedy}"
        )


def listed(environment: Path) -> dict[str, Published]:
    """Return the files of the packages that exports are made by, by their places in the environment.

    Of torch its Python alone; no byte-code, and nothing in ``bin``: a package may replace programs of a different one.
    """
    return {
        folder.parent.relative_to(environment).joinpath(place).as_posix(): each
        for name in STACK
        for folder in environment.glob(f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info")
        for place, each in _rows(folder, name)
    }


def _rows(folder: Path, distribution: str) -> Iterator[tuple[str, Published]]:
    kind = ".py" if distribution == LARGE else ""
    try:
        rows = [*csv.reader((folder / RECORD).read_text(encoding="utf-8").splitlines())]
        # A list of nothing is damaged like one with a row of too few columns.
        for place, digest, _ in rows or [[]]:
            algorithm, _, value = digest.partition("=")
            is_compared = place.endswith(kind) and not place.endswith(".pyc") and not place.startswith("..")
            if algorithm == "sha256" and is_compared:
                yield place, Published(distribution, base64.urlsafe_b64decode(f"{value}=").hex())
    except (OSError, ValueError, csv.Error):
        # As no file is.
        yield f"{folder.name}/{RECORD}", Published(distribution, "")


def edited(environment: Path, expected: Mapping[str, Published], memory: Path) -> dict[Path, str]:
    """Return the files of an environment that are not as expected, or missing, each with its distribution.

    Parameters
    ----------
    memory
        File with digests of files that did not change since: see `executorch_goldens.sweep.facts.Digests`.
    """
    digests = Digests(memory)
    before = dict(digests.known)
    found = {
        environment / place: each.distribution
        for place, each in expected.items()
        if digests.digest(f"{environment}/{place}") != each.digest
    }
    if digests.known != before:
        # Without it the next run reads the files again.
        with contextlib.suppress(OSError):
            digests.save()
    return found


def separate(environment: Path) -> None:
    """Replace links to uv's cache by copies, where an edit is likely."""
    for place in listed(environment):
        file = environment / place
        if file.is_file() and file.stat().st_size < COPIED:
            aside = file.with_name(f"{file.name}{ASIDE}")
            shutil.copy2(file, aside)
            aside.replace(file)
