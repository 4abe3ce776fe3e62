"""Reads ``releases.toml``, the version matrix. Imports neither torch nor executorch: noxfile.py imports it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from executorch_goldens import extensions
from executorch_goldens.errors import UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.settings.tables import TableError, as_declared
from executorch_goldens.zoo import targets

MATRIX = Path(__file__).with_name("releases.toml")

#: States of an upstream issue in `nox -s lab -- stock`; see releases.toml.
IssueState = Literal["bug", "fails", "fixed"]


class UnknownReleaseError(UsageError):
    """A release that the matrix does not know; the message names those that it does."""


class MatrixError(UsageError):
    """A table of releases.toml that does not hold together; the message names the table and the field."""


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
        Names of the targets (`executorch_goldens.zoo.targets.available`) that the release supports.
    unsupported
        Name of each of the others to the reason.
    patches
        Names of the patches that ``--patches auto`` applies, in order.
    issues
        Number of an upstream issue to its state with patches off, see `IssueState`.
    compilers
        Compilers of its TOSA payloads (`compiling`): distribution name to the version that upstream
        names. No environment of a release has them.
    """

    version: str
    pins: dict[str, str]
    targets: tuple[str, ...]
    unsupported: dict[str, str]
    patches: tuple[str, ...]
    issues: dict[int, str]
    compilers: dict[str, str] = field(default_factory=dict)

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
    default
        The release that the harness's own tests run in.
    releases
        Releases by version, in the order of the file: the newest is the last.
    """

    default: str
    releases: dict[str, Release]

    @property
    def newest(self) -> str:
        """The release of a command that neither its words, its Python nor the settings give one."""
        return next(reversed(self.releases))

    def release(self, version: str) -> Release:
        """Return the release, local version label ignored; raise `UnknownReleaseError`."""
        public = version.partition("+")[0]
        if public not in self.releases:
            raise UnknownReleaseError(
                f"release {public!r} is not in {MATRIX.name}: it knows {', '.join(self.releases)}. "
                f'Choose one of these, or add a [releases."{public}"] table.'
            )
        return self.releases[public]


class _Table(msgspec.Struct, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A table ``[releases."VERSION"]`` of the matrix; see `Release`."""

    torch: str
    torchao: str
    tosa_tools: str
    pytest: str
    unsupported: dict[str, Annotated[str, Meta(min_length=1)]]
    patches: tuple[str, ...]
    issues: dict[Annotated[str, Meta(pattern="^[0-9]{1,9}$")], IssueState]
    compilers: dict[str, str] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The matrix."""

    default: str
    common: dict[str, str]
    releases: dict[str, dict[str, Any]]


@functools.cache
def load(path: Path = MATRIX) -> Matrix:
    """Read and check the matrix; raise `MatrixError` for a table that does not hold together."""
    try:
        file = as_declared(untrusted.toml(path), _File)
    except (OSError, ValueError) as error:
        raise MatrixError(f"{path}: {error}") from error
    releases = {version: _release(path, version, table, file) for version, table in file.releases.items()}
    if file.default not in releases:
        raise MatrixError(f"{path}: default = {file.default!r} has no [releases] table")
    return Matrix(file.default, releases)


def _release(path: Path, version: str, table: Mapping[str, Any], file: _File) -> Release:
    try:
        untrusted.require_name(version)
        read = as_declared(table, _Table)
        known = targets.available()
        if unknown := [name for name in read.unsupported if name not in known]:
            raise TableError(f"unsupported: {', '.join(unknown)}: no such target; known: {', '.join(known)}")
    except extensions.ExtensionError:
        # Of an installed distribution: the table is right.
        raise
    except ValueError as error:
        raise MatrixError(f'{path}: [releases."{version}"] {error}') from error
    named = {"torch": read.torch, "torchao": read.torchao, "tosa-tools": read.tosa_tools}
    stated = {name: each.unsupported[version] for name, each in known.items() if version in each.unsupported}
    unsupported = stated | read.unsupported
    return Release(
        version=version,
        pins={"executorch": version, **named, "pytest": read.pytest, **file.common},
        targets=tuple(name for name in known if name not in unsupported),
        unsupported=unsupported,
        patches=read.patches,
        issues={int(number): state for number, state in read.issues.items()},
        compilers=read.compilers,
    )
