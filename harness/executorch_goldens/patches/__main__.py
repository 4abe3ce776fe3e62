"""``python -m executorch_goldens.patches``: digests of the installed ExecuTorch, for adding a release."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

from executorch_goldens.patches import available
from executorch_goldens.patches.guard import PATCH, SHORTCUT, Fits, digest
from executorch_goldens.patches.shortcuts import SHORTCUTS


def lines(kind: str, name: str, fits: Fits) -> Iterator[str]:
    """Yield a line per function: its digest as installed, and the releases that this digest is recorded for."""
    for function in dict.fromkeys(function for named in fits.values() for function in named):
        try:
            found = digest(function)
        except (ImportError, AttributeError, TypeError, OSError):
            found = "not there"
        recorded = {release: named[function] for release, named in fits.items() if function in named}
        releases = [release for release, digest in recorded.items() if found.startswith(digest)]
        yield f"{kind} {name} {function} {found} ({', '.join(releases) or 'unknown'})"


if __name__ == "__main__":
    if importlib.util.find_spec("executorch") is None:
        sys.exit(
            f"{sys.executable} has no ExecuTorch: run this with the Python of an environment, "
            "which goldens env make 1.5.1 prints"
        )
    for patch in available().values():
        for line in lines(PATCH, patch.name, patch.fits):
            print(line)
    for shortcut in SHORTCUTS.values():
        for line in lines(SHORTCUT, shortcut.name, shortcut.fits):
            print(line)
