"""What a patch is, and the check that it replaces what it was written for."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from harness.errors import HarnessError


@dataclass(frozen=True)
class Patch:
    """The correction of one upstream report, or another edit of installed code that a module of `--models` registers.

    Attributes
    ----------
    name
        What ``--patches`` and ``releases.toml`` call it.
    report
        Number of the upstream report; None for an edit that corrects none.
    summary
        One line: what is different once it is installed.
    known
        Per release, the functions that the patch replaces or whose behaviour it relies on, as
        ``module:qualified.name``, and the `digest` of the source it was written against.
    install
        Makes the replacement in this process for the release named; imports ExecuTorch.
    """

    name: str
    report: int | None
    summary: str
    known: Mapping[str, Mapping[str, str]]
    install: Callable[[str], None]


class PatchError(HarnessError):
    """A patch does not fit the ExecuTorch that is installed; nothing was replaced.

    Attributes
    ----------
    patch
        Name of the patch.
    release
        The release it was to be applied to.
    function
        The function in question as ``module:qualified.name``; None when the patch knows nothing of the
        release.
    expected
        Digest of the source that the patch was written against.
    found
        Digest of the source that is installed; None when there is no such function.
    """

    def __init__(
        self,
        patch: str,
        release: str,
        function: str | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        super().__init__(patch, release, function, expected, found)
        self.patch = patch
        self.release = release
        self.function = function
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        if self.function is None:
            return (
                f"patch {self.patch!r} was not written for ExecuTorch {self.release}: leave it out of --patches, or "
                f"review the functions it replaces and record their digests for {self.release} "
                f"(`python -m harness.patches` prints them)"
            )
        if self.found is None:
            return (
                f"patch {self.patch!r} replaces or relies on {self.function}, which the installed {self.release} does "
                f"not have: is another release installed? Otherwise the patch must be revised"
            )
        return (
            f"patch {self.patch!r} was not written for this source of {self.function} in ExecuTorch {self.release}: "
            f"its SHA-256 is {self.found}, not {self.expected}. Review the new source; if the patch still fits, "
            f"record the new digest beside the release in the patch's module"
        )


class UnknownPatchError(HarnessError, ValueError):
    """A name that is no patch's.

    Attributes
    ----------
    name
        The name that was asked for.
    known
        The names there are.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"there is no patch {self.name!r}; known: {', '.join(self.known)} (or 'auto', or 'none' alone)"


def resolve(function: str) -> Any:
    """Import and return ``module:qualified.name``; ImportError or AttributeError when it is not there."""
    module, _, name = function.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def digest(function: str) -> str:
    """Return the SHA-256, in hexadecimal, of the source of ``module:qualified.name``.

    What is hashed is the UTF-8 text of `inspect.getsource` and nothing else: decorators, comments, docstring
    and indentation count, line ends are newlines. A change of a comment upstream is reviewed like any other.
    """
    return hashlib.sha256(inspect.getsource(resolve(function)).encode()).hexdigest()


def verify(patch: Patch, release: str) -> None:
    """Raise `PatchError` unless every function that `patch` names for `release` is the one it knows."""
    if release not in patch.known:
        raise PatchError(patch.name, release)
    for function, expected in patch.known[release].items():
        try:
            found = digest(function)
        except (ImportError, AttributeError) as missing:
            raise PatchError(patch.name, release, function, expected) from missing
        if found != expected:
            raise PatchError(patch.name, release, function, expected, found)
