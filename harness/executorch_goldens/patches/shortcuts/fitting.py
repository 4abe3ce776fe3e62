"""Finds the patches and shortcuts that fit this process's ExecuTorch; ``toolchains`` runs it in an environment."""

from __future__ import annotations

import json
import sys

from executorch_goldens.errors import placed
from executorch_goldens.patches import Patch, available, guard
from executorch_goldens.patches.guard import GuardError
from executorch_goldens.patches.shortcuts import SHORTCUTS, Shortcut


def unfit(kind: str, each: Patch | Shortcut, release: str) -> str:
    """Return why something does not fit a release as it is installed; empty where it does."""
    unguarded = each.unguarded if isinstance(each, Patch) else None
    try:
        guard.verify(kind, each.name, each.fits, release, unguarded)
    except GuardError as error:
        if error.function is None:
            return f"not written for ExecuTorch {release}"
        return f"{error.function} is not the function that it was written for"
    return ""


def main() -> None:
    """Print a line of JSON: names of patches, and of shortcuts, each to why it does not fit, or an empty text.

    The first argument is JSON: the release, names of patches, names of shortcuts. Sources that cannot be imported end
    it with an error that names their file and line.
    """
    release, patches, shortcuts = json.loads(sys.argv[1])
    try:
        of_patches = {name: unfit(guard.PATCH, available()[name], release) for name in patches}
        of_shortcuts = {name: unfit(guard.SHORTCUT, SHORTCUTS[name], release) for name in shortcuts}
    except BaseException as error:
        sys.exit(placed(error))
    print(json.dumps([of_patches, of_shortcuts]))
