"""The edit of a toolchain that is a release with the sources of a checkout: a script carries it."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.toolchains.sources import package_in
from executorch_goldens.toolchains.toolchain import Toolchain

#: Lines of a larger diff are not carried: the commit names it.
MOST_LINES = 400


@dataclass(frozen=True)
class EditedPackage:
    """The files of the package executorch that an edit replaces or adds.

    Attributes
    ----------
    source
        The checkout with its commit, in words.
    files
        Place in the package to the SHA-256 of its content.
    diff
        Lines of a unified diff against the release, as ``patch -p1`` takes it in the package's folder; none where it
        is longer than `MOST_LINES`, or the release's own files are not there.
    """

    source: str
    files: dict[str, str]
    diff: tuple[str, ...] = ()

    @classmethod
    def from_toolchain(cls, toolchain: Toolchain, source: str) -> EditedPackage | None:
        """Return the edit of a toolchain; None where its ExecuTorch is a release's.

        Parameters
        ----------
        source
            See `executorch_goldens.toolchains.toolchain.Toolchain`.
        """
        if not source:
            return None
        environment = toolchain.python.parent.parent
        # The name of an environment that is laid over another one begins with that one's.
        below = environment.with_name(environment.name.rpartition("-")[0])
        if not below.is_dir():
            return cls(source, {})
        head, base = package_in(environment), package_in(below)
        files: dict[str, str] = {}
        diff: list[str] = []
        for name in _differing(head, base):
            content = (head / name).read_bytes()
            files[name] = hashlib.sha256(content).hexdigest()
            was = base / name
            before = was.read_text(errors="replace").splitlines() if was.is_file() else []
            after = content.decode(errors="replace").splitlines()
            diff += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
        return cls(source, files, tuple(diff) if len(diff) <= MOST_LINES else ())


def _differing(head: Path, base: Path) -> Iterator[str]:
    """Yield the files of a package that are no second name of another package's."""
    for folder, names, files in os.walk(head):
        names[:] = sorted(each for each in names if each != "__pycache__")
        for name in sorted(files):
            path = Path(folder, name)
            was = base / path.relative_to(head)
            if not (was.is_file() and was.samefile(path)):
                yield path.relative_to(head).as_posix()
