"""``python -m harness.patches``: digests of the installed ExecuTorch, for adding a release."""

from __future__ import annotations

from harness.patches import PATCHES, digest

if __name__ == "__main__":
    for patch in PATCHES.values():
        functions = dict.fromkeys(function for known in patch.known.values() for function in known)
        for function in functions:
            try:
                found = digest(function)
            except (ImportError, AttributeError):
                found = "not there"
            releases = [release for release, known in patch.known.items() if known.get(function) == found]
            print(f"{patch.name} {function} {found} ({', '.join(releases) or 'unknown'})")
