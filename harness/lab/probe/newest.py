"""What the package index has that is newer than the newest release of the matrix, and what to try of it.

The index is asked through the installer, uv or pip, so that a mirror or a proxy that it is configured with is used.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from executorch_goldens.errors import HarnessError
from executorch_goldens.releases import Matrix, Release

#: What goldens name of a release: `executorch_goldens.releases.Release.stack`.
STACK = ("executorch", "torch", "torchao", "tosa-tools")
#: Seconds that the index may take.
INDEX_LIMIT = 300


class IndexUnreadableError(HarnessError):
    """A package index that does not answer; the message says what the installer says."""


@dataclass(frozen=True)
class Combination:
    """Versions to try.

    Attributes
    ----------
    name
        What differs from the release: ``torch 2.15.0``, or ``together``.
    executorch
        Requirement of it.
    others
        Requirements of what else differs.
    """

    name: str
    executorch: str
    others: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Name of a folder for it."""
        return self.name.replace(" ", "-")


def last(matrix: Matrix) -> Release:
    """Return the newest release of the matrix."""
    return matrix.releases[max(matrix.releases, key=Version)]


def newest(python: str, names: Sequence[str] = STACK) -> dict[str, str]:
    """Return the newest version of each distribution that the index has for a version of Python.

    Raises
    ------
    IndexUnreadableError
        When it does not answer.
    """
    uv = shutil.which("uv")
    if uv:
        command = [uv, "pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate"]
        found = _asked([*command, "--python-version", python, "-"], "\n".join(names))
        versions = dict(_pinned(found))
    else:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed"]
        found = _asked([*command, "--quiet", "--report", "-", *names], "")
        versions = {
            canonicalize_name(each["metadata"]["name"]): each["metadata"]["version"]
            for each in json.loads(found)["install"]
        }
    if missing := [name for name in names if name not in versions]:
        raise IndexUnreadableError(f"the package index has no {', '.join(missing)} for Python {python}")
    return {name: versions[name].partition("+")[0] for name in names}


def _pinned(lines: str) -> Iterator[tuple[str, str]]:
    for line in lines.splitlines():
        requirement = Requirement(line)
        for specifier in requirement.specifier:
            yield canonicalize_name(requirement.name), specifier.version


def _asked(command: Sequence[str], words: str) -> str:
    try:
        return subprocess.run(
            command, input=words, capture_output=True, text=True, check=True, timeout=INDEX_LIMIT
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise IndexUnreadableError(f"the package index does not answer within {INDEX_LIMIT} s") from error
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())
        raise IndexUnreadableError(f"the package index does not answer: {said}") from error


def combinations(base: Release, found: Mapping[str, str]) -> list[Combination]:
    """Return what to try: each distribution that is newer than the release's alone, then all of these together."""
    newer = {name: version for name, version in found.items() if Version(version) > Version(base.pins[name])}
    tried = [_combination(base, f"{name} {version}", {name: version}) for name, version in newer.items()]
    if len(newer) > 1:
        tried.append(_combination(base, "together", newer))
    return tried


def _combination(base: Release, name: str, versions: Mapping[str, str]) -> Combination:
    others = {each: version for each, version in versions.items() if each != "executorch"}
    executorch = versions.get("executorch", base.version)
    return Combination(
        name, f"executorch=={executorch}", tuple(f"{each}=={version}" for each, version in others.items())
    )
