"""The description of a shortcut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from executorch_goldens.patches.guard import Fits


@dataclass(frozen=True)
class Shortcut:
    """A piece of work that exports are spared.

    Attributes
    ----------
    name
        Its name in results.
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
