"""Detects exports that failed in the repository's own code: a file of its zoo, or of its target's distribution.

Such a failure is a mistake of the repository's, and says nothing about the release. The innermost frame of the first
cause decides: what torch or ExecuTorch raises is theirs, also where a model or a target called it.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens import extensions
from executorch_goldens.goldens.findings import Frame
from executorch_goldens.zoo import targets

#: Text between the traceback of a cause and that of its consequence (`traceback.TracebackException`).
RAISED_FROM = "\nThe above exception was the direct cause of the following exception:\n\n"
CAUGHT = "\nDuring handling of the above exception, another exception occurred:\n\n"
_CHAIN = re.compile(f"({RAISED_FROM}|{CAUGHT})")
_HEAD = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
#: Folders of installed distributions.
INSTALLED = ("site-packages", "dist-packages")
#: Parts of paths that are no repository's own: of interpreters, and of checkouts of what exports.
_OTHERS = re.compile(r"python\d+\.\d+|torch|torchao|executorch")


@dataclass(frozen=True)
class OwnFiles:
    """The files of a repository.

    Attributes
    ----------
    zoos
        Files and folders of its zoos, wherever they are.
    """

    root: Path
    zoos: tuple[Path, ...] = ()

    @classmethod
    def in_repository(cls, root: Path, zoos: Iterable[str] = ()) -> OwnFiles:
        """Return those of a repository in `root`, with what belongs to the files of its zoos' own modules."""
        return cls(root.resolve(), tuple(_whole(Path(file).resolve()) for file in zoos))

    def place(self, traceback: str, target: str) -> Frame | None:
        """Return where an own file raised the first cause of a traceback; None where none of them did.

        Parameters
        ----------
        traceback
            The text of the whole traceback, with all that was raised from the cause.
        target
            The functions of its distribution are own as well.
        """
        return next((each for each in frames(traceback)[-1:] if self._holds(each, target)), None)

    def nearest(self, traceback: str, target: str) -> Frame | None:
        """Return the innermost frame of an own file in the first cause, whoever raised it; None where there is none."""
        return next((each for each in reversed(frames(traceback)) if self._holds(each, target)), None)

    def relative(self, frame: Frame) -> Frame:
        """Return a frame whose file is named from the repository's folder where it is in that."""
        file = Path(frame.file).resolve()
        return (
            msgspec.structs.replace(frame, file=str(file.relative_to(self.root)))
            if file.is_relative_to(self.root)
            else frame
        )

    def _holds(self, frame: Frame, target: str) -> bool:
        # Code that was made on the way has a name in place of a path.
        if not Path(frame.file).is_absolute():
            return False
        file = Path(frame.file).resolve()
        if any(map(file.is_relative_to, filter(None, map(_folder, extensions.packages())))):
            return False
        packages = _packages(target)
        folders = filter(None, (*self.zoos, *map(_folder, packages)))
        if _package_of(file) in packages or any(map(file.is_relative_to, folders)):
            return True
        if not file.is_relative_to(self.root):
            return False
        return not any(map(_OTHERS.fullmatch, file.relative_to(self.root).parts))


def frames(traceback: str) -> list[Frame]:
    r"""Return the frames of the first cause of a traceback, the innermost last.

    >>> frames('Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    x()\nValueError: no\n')
    [Frame(file='/a.py', line=3, function='f')]
    """
    # Written first cause first: back from the last one while each was raised from the one before.
    parts = _CHAIN.split(traceback)
    at = len(parts) - 1
    while at and parts[at - 1] == RAISED_FROM:
        at -= 2
    found: list[Frame] = []
    for line in parts[at].partition(_HEAD)[2].lstrip("\n").splitlines():
        if line and not line.startswith(" "):
            break
        if frame := _FRAME.fullmatch(line):
            found.append(Frame(frame["file"], int(frame["line"]), frame["function"] or ""))
    return found


def _whole(file: Path) -> Path:
    """Return the folder of a package, of its ``__init__.py``; the file of any other module."""
    return file.parent if file.name == "__init__.py" else file


def _package_of(file: Path) -> str:
    """Return the top-level package of an installed file, in whichever environment; empty for any other.

    >>> _package_of(Path("/env/lib/python3.11/site-packages/mine/lowering.py")), _package_of(Path("/mine/lowering.py"))
    ('mine', '')
    """
    below = [after for part, after in itertools.pairwise(file.parts) if part in INSTALLED]
    return Path(below[-1]).stem if below else ""


def _packages(target: str) -> frozenset[str]:
    """Return the top-level packages of a target that a distribution brings."""
    points = [point for point in extensions.points(extensions.TARGETS) if point.name == target]
    if not points:
        return frozenset()
    known = targets.available()[target]
    modules = [point.module for point in points] + [known.partitioner, known.quantizer]
    packages = {name.partition(":")[0].partition(".")[0] for name in modules if name}
    return frozenset(name for name in packages if not _OTHERS.fullmatch(name))


def _folder(package: str) -> Path | None:
    """Return where a top-level package is, a folder or a file; None where this Python does not find it."""
    spec = importlib.util.find_spec(package)
    return _whole(Path(spec.origin).resolve()) if spec is not None and spec.origin else None
