"""The description of a shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
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
        the first 16 digits of the `executorch_goldens.patches.guard.digest` of the source that it was written for.
    install
        Makes the replacement in this process; imports what it replaces.
    """

    name: str
    summary: str
    fits: Fits
    install: Callable[[], None]


def by_release(table: str) -> dict[str, dict[str, str]]:
    """Read functions, each with digests and the releases that have them, as release to function to digest.

    A release for which a function has no digest is left out: the shortcut was not written for it.

    >>> by_release("a:f 6529bcfa8c2427f2 1.1.0 1.2.0  9b3b555879e4a3e7 1.4.1")["1.2.0"]
    {'a:f': '6529bcfa8c2427f2'}
    """
    found = defaultdict[str, dict[str, str]](dict)
    function = digest = ""
    for word in table.split():
        if ":" in word:
            function = word
        elif "." in word:
            found[word][function] = digest
        else:
            digest = word
    functions = sum(":" in word for word in table.split())
    return {release: named for release, named in sorted(found.items()) if len(named) == functions}
