"""Reads ``releases.toml``, the version matrix. Imports neither torch nor executorch: noxfile.py imports it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executorch_goldens import targets
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import untrusted
from executorch_goldens.files.untrusted import UntrustedError

MATRIX = Path(__file__).with_name("releases.toml")

#: What the matrix has beside its releases, and of which type.
FIELDS = {"python": str, "default": str, "common": dict, "releases": dict}

#: What `nox -s lab -- stock` may find of an upstream issue on a release; see releases.toml.
ISSUE_STATES = ("bug", "fails", "fixed")


class UnknownReleaseError(HarnessError, ValueError):
    """A release that the matrix does not know.

    Attributes
    ----------
    release
        The version asked for.
    known
        The versions of the matrix.
    """

    def __init__(self, release: str, known: tuple[str, ...]) -> None:
        super().__init__(release, known)
        self.release = release
        self.known = known

    def __str__(self) -> str:
        return (
            f"release {self.release!r} is not in {MATRIX.name}: it knows {', '.join(self.known)}. "
            f'Choose one of these, or add a [releases."{self.release}"] table.'
        )


class MatrixError(HarnessError, ValueError):
    """A table of releases.toml that does not hold together; the message names the table and the field."""


@dataclass(frozen=True)
class KnownDefect:
    """What is known to be wrong with a cell of a release, and no declared patch corrects.

    Attributes
    ----------
    verdict
        The verdict about the cell, see `executorch_goldens.judging.verdict.Verdict`.
    reason
        One line, with the upstream issue where there is one.
    """

    verdict: str
    reason: str


@dataclass(frozen=True)
class Release:
    """One ExecuTorch version with the packages it is paired with.

    Attributes
    ----------
    version
        Version of executorch, without a local label.
    pins
        Distribution name to version: all that an environment is made of, executorch included.
    targets
        Names of the targets (`executorch_goldens.targets.available`) that the release supports.
    unsupported
        Name of each of the others to the reason.
    patches
        Names of the patches that ``--patches auto`` applies, in order.
    issues
        Number of an upstream issue to its state with patches off, one of `ISSUE_STATES`.
    known
        ``target/case`` to the verdict and the reason of a cell that is known to be wrong on this release.
    compilers
        What compiles its TOSA payloads further (`compiling`): distribution name to the version that upstream
        names. No environment of a release has them.
    known_in
        The file that `known` stands in.
    """

    version: str
    pins: dict[str, str]
    targets: tuple[str, ...]
    unsupported: dict[str, str]
    patches: tuple[str, ...]
    issues: dict[int, str]
    known: dict[str, KnownDefect]
    compilers: dict[str, str] = field(default_factory=dict)
    known_in: str = MATRIX.name

    def requirements(self) -> list[str]:
        """Return the pins as pip requirements."""
        return [f"{name}=={version}" for name, version in self.pins.items()]

    def stack(self) -> dict[str, str]:
        """Return the pins that an artifact depends on: the ones a golden names."""
        return {name: self.pins[name] for name in ("executorch", "torch", "torchao", "tosa-tools")}


@dataclass(frozen=True)
class Matrix:
    """All of releases.toml.

    Attributes
    ----------
    python
        Version of Python that environments are made with.
    default
        The release that the harness's own tests run in.
    releases
        By version, in the order of the file.
    """

    python: str
    default: str
    releases: dict[str, Release]

    def release(self, version: str) -> Release:
        """Return the release, local version label ignored; raise `UnknownReleaseError`."""
        public = version.partition("+")[0]
        if public not in self.releases:
            raise UnknownReleaseError(public, tuple(self.releases))
        return self.releases[public]


@functools.cache
def load(path: Path = MATRIX) -> Matrix:
    """Read and check the matrix; raise `MatrixError` for a table that does not hold together."""
    try:
        tables = untrusted.toml(path)
    except (OSError, ValueError) as error:
        raise MatrixError(f"{path}: {error}") from error
    for name, kind in FIELDS.items():
        if not isinstance(tables.get(name), kind):
            raise MatrixError(f"{path}: the field {name!r} is missing, or no {kind.__name__}")
    try:
        releases = {
            version: _release(version, table, tables["common"])
            for version, table in tables["releases"].items()
        }
        matrix = Matrix(
            python=tables["python"],
            default=tables["default"],
            releases=releases,
        )
    except KeyError as error:
        raise MatrixError(f"{path}: the field {error} is missing") from error
    except UntrustedError as error:
        raise MatrixError(f"{path}: {error}") from error
    if matrix.default not in releases:
        raise MatrixError(f"{path}: default = {matrix.default!r} has no [releases] table")
    return matrix


def _release(version: str, table: dict[str, object], common: dict[str, str]) -> Release:
    def strings(field: str) -> tuple[str, ...]:
        value = table[field]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise MatrixError(f'[releases."{version}"] {field}: expected a list of strings')
        return tuple(value)

    if not isinstance(table, dict):
        raise MatrixError(f'[releases."{version}"]: expected a table')
    untrusted.require_name(version)
    pinned = ("torch", "torchao", "tosa-tools", "pytest")
    missing = [field for field in (*pinned, "unsupported", "patches", "issues") if field not in table]
    if missing:
        raise MatrixError(f'[releases."{version}"] {", ".join(missing)}: missing')
    pins: dict[str, Any] = {**{name: table[name] for name in pinned}, **common}
    if not_text := [name for name, pin in pins.items() if not isinstance(pin, str)]:
        raise MatrixError(f'[releases."{version}"] {", ".join(not_text)}: expected a version')
    issues = table["issues"]
    if not isinstance(issues, dict) or any(state not in ISSUE_STATES for state in issues.values()):
        raise MatrixError(f'[releases."{version}"] issues: each is one of {", ".join(ISSUE_STATES)}')
    if not_numbers := [number for number in issues if not re.fullmatch("[0-9]{1,9}", number)]:
        raise MatrixError(
            f'[releases."{version}"] issues: {", ".join(map(repr, not_numbers))}: expected numbers of upstream issues'
        )
    unsupported = table["unsupported"]
    if not isinstance(unsupported, dict) or not all(
        isinstance(reason, str) and reason for reason in unsupported.values()
    ):
        raise MatrixError(f'[releases."{version}"] unsupported: expected a table of target = "reason"')
    known = targets.available()
    unknown = [name for name in unsupported if name not in known]
    if unknown:
        raise MatrixError(
            f'[releases."{version}"] unsupported: {", ".join(unknown)}: no such target; known: {", ".join(known)}'
        )
    return Release(
        version=version,
        pins={"executorch": version, **pins},
        targets=tuple(name for name in known if name not in unsupported),
        unsupported=dict(unsupported),
        patches=strings("patches"),
        issues={int(number): state for number, state in issues.items()},
        known=_known(version, table),
        compilers=_compilers(version, table),
    )


def _compilers(version: str, table: Mapping[str, object]) -> dict[str, str]:
    compilers = table.get("compilers", {})
    if not isinstance(compilers, dict) or not all(isinstance(pin, str) for pin in compilers.values()):
        raise MatrixError(f'[releases."{version}"] compilers: expected a table of distribution = "version"')
    return dict(compilers)


def known_defects(path: Path | None) -> dict[str, dict[str, KnownDefect]]:
    """Return the tables ``[releases."VERSION".known]`` of a file, by version; none for None; raise `MatrixError`."""
    if path is None:
        return {}
    try:
        tables = untrusted.toml(path)
        return {version: _known(version, table) for version, table in tables["releases"].items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise MatrixError(f'{path}: expected tables [releases."VERSION".known] ({error})') from error


def _known(version: str, table: Mapping[str, object]) -> dict[str, KnownDefect]:
    defects = table.get("known", {}) if isinstance(table, dict) else None
    if not isinstance(defects, dict) or not all(isinstance(text, str) for text in defects.values()):
        raise MatrixError(
            f'[releases."{version}"] known: expected a table of "target/case" = "verdict: reason"'
        )
    return {cell: KnownDefect(*_halves(cell, text)) for cell, text in defects.items()}


def _halves(cell: str, text: str) -> tuple[str, str]:
    verdict, separator, reason = text.partition(": ")
    if not separator or not reason.strip():
        raise MatrixError(f'known defect "{cell}" = "{text}": expected "verdict: reason"')
    return verdict, reason
