"""The description of a shortcut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from executorch_goldens.patches.guard import Fits


@dataclass(frozen=True)
class Shortcut:
    """A piece of work that exports are spared.

    Attributes
    ----------
    name
        Its name in results and in ``nox -s lab -- shortcuts``.
    summary
        One line: what is computed once or not at all.
    fits
        Per release, the functions that it replaces or whose behaviour it relies on, as ``module:qualified.name``, and
        the `executorch_goldens.patches.guard.digest` of the source that it was written for.
    install
        Makes the replacement in this process; imports what it replaces.
    """

    name: str
    summary: str
    fits: Fits
    install: Callable[[], None]


def by_release(functions: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Turn function to digest to releases, separated by spaces, into release to function to digest.

    A release for which a function has no digest is left out: the shortcut was not written for it.
    """
    found: dict[str, dict[str, str]] = {}
    for function, digests in functions.items():
        for digest, releases in digests.items():
            for release in releases.split():
                found.setdefault(release, {})[function] = digest
    return {release: named for release, named in sorted(found.items()) if len(named) == len(functions)}
