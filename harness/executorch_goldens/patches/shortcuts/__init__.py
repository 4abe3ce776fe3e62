"""Shortcuts: results that torch and ExecuTorch compute again in every export, computed once, with the same bytes.

A shortcut is installed in the template before it warms up, so that forked children find what is computed once; a fresh
interpreter installs them as well. Each is one module, listed in `SHORTCUTS`: what it replaces and why that is safe is
its docstring, and `patches.guard` verifies the functions that it names. To delete one, delete its module, its two lines
here and its tests. Unlike a patch it must not change a byte of any artifact: runs that record goldens, and the weekly
CI, have none, and every other run compares with these goldens.

Importing this package imports neither torch nor executorch.
"""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.patches import guard
from executorch_goldens.patches.patch import Shortcut
from executorch_goldens.patches.shortcuts import (
    annotation_patterns,
    composite_operators,
    composite_overrides,
    lazy_code,
    node_history,
    quantize_shapes,
    retraced_shapes,
)
from executorch_goldens.zoo.targets import Target

__all__ = ["INSTALLED", "SHORTCUTS", "Shortcut", "install"]

#: Every shortcut by name, in the order in which they are installed and named.
SHORTCUTS: dict[str, Shortcut] = {
    module.SHORTCUT.name: module.SHORTCUT
    for module in (
        node_history,
        composite_operators,
        composite_overrides,
        quantize_shapes,
        lazy_code,
        annotation_patterns,
        retraced_shapes,
    )
}

#: Names of the shortcuts that this process has, in the order in which they were installed.
INSTALLED: list[str] = []


def install(names: Sequence[str], release: str, target: Target | None = None) -> None:
    """Verify, then install, the shortcuts named, in this process: either all are, or none.

    Of what only shortens the other backend's exports than those for `target`, nothing is run: it is noted, and not
    installed.

    Raises
    ------
    executorch_goldens.patches.guard.GuardError
        When a function is not the one that a shortcut was written for.
    """
    chosen = [SHORTCUTS[name] for name in names]
    needed = [each for each in chosen if target is None or target.runs_any(each.fits.get(release, ()))]
    for shortcut in needed:
        guard.verify(guard.SHORTCUT, shortcut.name, shortcut.fits, release)
    INSTALLED.extend(shortcut.name for shortcut in chosen)
    for shortcut in needed:
        shortcut.install()
