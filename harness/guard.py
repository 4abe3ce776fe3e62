"""The guard of patches and shortcuts: each fits the sources that it was written for, and is refused for any other."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from harness.errors import HarnessError

#: Per release, the functions that are replaced or relied on, as ``module:qualified.name``, and the `digest` of each.
Known = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Kind:
    """What is guarded, and what its messages say about the way out.

    Attributes
    ----------
    name
        What one is called.
    usual
        What its option takes instead of names: what the release declares, or all.
    without
        How to do without one.
    records
        Where its digests are recorded.
    """

    name: str
    usual: str
    without: str
    records: str


PATCH = Kind(
    "patch",
    "auto",
    "leave it out of --patches",
    "the patch's module (`python -m harness.patches` prints them)",
)
SHORTCUT = Kind(
    "shortcut",
    "all",
    "use --shortcuts none, or name those that fit",
    "its module in harness/exporting/shortcuts",
)


class GuardError(HarnessError):
    """A patch or a shortcut does not fit the release that is installed; nothing was replaced.

    Attributes
    ----------
    kind
        `PATCH` or `SHORTCUT`.
    name
        Its name.
    release
        The release that is installed.
    function
        The function in question as ``module:qualified.name``; None when nothing is known about the release.
    expected
        Digest of the source that it was written for.
    found
        Digest of the source that is installed; None when there is no such function.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        release: str,
        function: str | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        super().__init__(kind, name, release, function, expected, found)
        self.kind = kind
        self.name = name
        self.release = release
        self.function = function
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        named = f"{self.kind.name} {self.name!r}"
        if self.function is None:
            return (
                f"{named} was not written for ExecuTorch {self.release}: {self.kind.without}; or review the functions "
                f"it replaces and record their digests for {self.release} in {self.kind.records}"
            )
        if self.found is None:
            return (
                f"{named} replaces or relies on {self.function}, which the installed {self.release} does not have: is "
                f"a different release installed? Otherwise {self.kind.without}, or revise the {self.kind.name}"
            )
        return (
            f"{named} was not written for this source of {self.function} in ExecuTorch {self.release}: its SHA-256 is "
            f"{self.found}, not {self.expected}. Review the new source: if the {self.kind.name} still fits, record the "
            f"new digest in {self.kind.records}; otherwise {self.kind.without}"
        )


class UnknownNameError(HarnessError, ValueError):
    """A name that no patch, or no shortcut, has.

    Attributes
    ----------
    kind
        `PATCH` or `SHORTCUT`.
    name
        The name that was asked for.
    known
        The names there are.
    """

    def __init__(self, kind: Kind, name: str, known: tuple[str, ...]) -> None:
        super().__init__(kind, name, known)
        self.kind = kind
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return (
            f"there is no {self.kind.name} {self.name!r}; known: {', '.join(self.known)} "
            f"(or {self.kind.usual!r}, or 'none' alone)"
        )


def in_order(kind: Kind, names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return `names`, each once, in the order of `known`; raise `UnknownNameError` for one that is not there."""
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(kind, name, tuple(known))
    return tuple(name for name in known if name in wanted)


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


def verify(kind: Kind, name: str, known: Known, release: str) -> None:
    """Raise `GuardError` unless every function that is known for `release` has the source that is known."""
    if release not in known:
        raise GuardError(kind, name, release)
    for function, expected in known[release].items():
        try:
            found = digest(function)
        except (ImportError, AttributeError) as missing:
            raise GuardError(kind, name, release, function, expected) from missing
        if found != expected:
            raise GuardError(kind, name, release, function, expected, found)
