"""Locks of environments, and how an installer uses them; harness/lab/docs/supply-chain.md.

A lock holds every distribution of an environment with its version and the hashes of its files. `nox -s lab -- locks`
makes them. Imports only the standard library: noxfile.py imports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.errors import HarnessError
from executorch_goldens.settings.releases import Release

FOLDER = Path(__file__).resolve().parents[1] / "locks"
#: Lock of the packages that build this project, and distributions that have no wheel.
BUILD = "build"
UPDATE = "nox -s lab -- locks --update"

#: Compilers of payloads, each in its own environment: the session, and its distributions; the first
#: gives the version.
COMPILERS = {"vela": ("ethos-u-vela",), "vgf": ("ai-ml-sdk-model-converter", "ai-ml-sdk-vgf-library")}


class NoLockError(HarnessError):
    """A lock that is not there; the message names it and the command that makes it."""


@dataclass(frozen=True)
class InstallStep:
    """One call of an installer, uv or pip.

    Attributes
    ----------
    arguments
        Arguments after ``pip install``.
    environment
        Variables that it needs, None for one that it must not have.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str | None]


def path(name: str) -> Path:
    """Return the file of a lock; raise `NoLockError`."""
    file = FOLDER / f"{name}.txt"
    if not file.is_file():
        raise NoLockError(f"harness/executorch_goldens/locks/{file.name} is missing: {UPDATE} makes it")
    return file


def torch_of(release: Release) -> str:
    """Return the name of the lock of PyPI's build of a release's torch, with that build's own requirements."""
    return f"torch-{release.pins['torch']}"


def building() -> dict[str, str | None]:
    """Return variables with which a distribution without a wheel is built from locked packages."""
    return dict.fromkeys(("UV_BUILD_CONSTRAINT", "PIP_BUILD_CONSTRAINT"), str(path(BUILD)))


def locked(names: Sequence[str]) -> InstallStep:
    """Return the call that installs exactly the locked packages, with their hashes verified."""
    files = (word for name in names for word in ("-r", str(path(name))))
    # The backend would take torchao from where hashes are others.
    return InstallStep(("--no-deps", "--require-hashes", *files), {**building(), "UV_TORCH_BACKEND": None})


def steps(release: Release, tools: Sequence[str], elsewhere: Sequence[str] | None) -> Iterator[InstallStep]:
    """Yield the calls that make the environment of a release.

    Parameters
    ----------
    tools
        Names of locks that are installed beside it.
    elsewhere
        Arguments that choose another build of torch than PyPI's, which has other hashes; None for PyPI's.
    """
    if elsewhere is None:
        yield locked((release.version, torch_of(release), *tools))
    else:
        yield locked((release.version, *tools))
        yield InstallStep((f"torch=={release.pins['torch']}", *elsewhere), building())
