"""Finds the patches and shortcuts that fit this process's ExecuTorch; ``toolchains`` runs it in an environment."""

from __future__ import annotations

import json
import sys

from executorch_goldens.errors import placed
from executorch_goldens.patches import Patch, available
from executorch_goldens.patches.guard import GuardError, resolve, verify


def unfit(patch: Patch, release: str) -> str:
    """Return why a patch does not fit a release as it is installed; empty where it does."""
    try:
        verify(patch, release)
    except GuardError as error:
        if error.function is None:
            return f"not written for ExecuTorch {release}"
        return f"{error.function} is not the function that it was written for"
    return ""


def main() -> None:
    """Print a line of JSON: names of patches, and of shortcuts, each to why it does not fit, or an empty text.

    The first argument is JSON: the release, names of patches, hooks of shortcuts by name. Sources that cannot be
    imported end it with an error that names their file and line.
    """
    release, patches, shortcuts = json.loads(sys.argv[1])
    try:
        of_patches = {name: unfit(available()[name], release) for name in patches}
        of_shortcuts = {name: unfit(resolve(hook), release) for name, hook in shortcuts.items()}
    except BaseException as error:
        sys.exit(placed(error))
    print(json.dumps([of_patches, of_shortcuts]))
