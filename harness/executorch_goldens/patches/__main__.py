"""``python -m executorch_goldens.patches``: digests of the installed ExecuTorch, for adding a release."""

from __future__ import annotations

from executorch_goldens.patches import available
from executorch_goldens.patches.guard import digest

if __name__ == "__main__":
    for patch in available().values():
        functions = dict.fromkeys(function for named in patch.fits.values() for function in named)
        for function in functions:
            try:
                found = digest(function)
            except (ImportError, AttributeError, TypeError, OSError):
                found = "not there"
            releases = [release for release, named in patch.fits.items() if named.get(function) == found]
            print(f"{patch.name} {function} {found} ({', '.join(releases) or 'unknown'})")
