"""``python -m executorch_goldens.patches``: digests of the installed ExecuTorch, for adding a release."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

from executorch_goldens.patches import Patch, available, shortcuts
from executorch_goldens.patches.guard import digest


def lines(patch: Patch) -> Iterator[str]:
    """Yield a line per function: its digest as installed, and the releases that this digest is recorded for."""
    for function in dict.fromkeys(function for named in patch.fits.values() for function in named):
        try:
            found = digest(function)
        except (ImportError, AttributeError, TypeError, OSError):
            found = "not there"
        recorded = {release: named[function] for release, named in patch.fits.items() if function in named}
        releases = [release for release, digest in recorded.items() if found.startswith(digest)]
        yield f"{patch.kind} {patch.name} {function} {found} ({', '.join(releases) or 'unknown'})"


if __name__ == "__main__":
    if importlib.util.find_spec("executorch") is None:
        sys.exit(
            f"{sys.executable} has no ExecuTorch: run this with the Python of an environment, "
            "which goldens env make 1.5.1 prints"
        )
    for patch in (*available().values(), *shortcuts().values()):
        for line in lines(patch):
            print(line)
