"""The base class of user-facing errors."""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path


class HarnessError(Exception):
    """Something the user can put right; the message names the thing and the way out.

    `executorch_goldens.cli` prints it as one line and exits with 2; the plugin makes it pytest's usage error.
    """


class CommandError(HarnessError):
    """A command line that cannot be carried out as given."""


class UsageError(HarnessError, ValueError):
    """A run cannot start as requested; the message names the reason and the way out."""


@dataclass(eq=False)
class FileError(HarnessError):
    """A file or folder cannot be used: its path, the defect, and the way out."""

    path: Path
    what: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}. {self.way_out}"


def nearest(name: str, known: Collection[str]) -> str:
    """Return the way out for an unknown name: the nearest known one, or all of them.

    >>> nearest("1.5.2", ["1.4.1", "1.5.1"]), nearest("x", ["a", "b"])
    ("did you mean '1.5.1'?", 'there are a, b')
    """
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def placed(error: BaseException) -> str:
    """Return an exception in one line, after the file and line to look at; a `HarnessError` names its own."""
    words = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, HarnessError):
        return words
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    place = _place(traceback.extract_tb(error.__traceback__))
    return f"{place.filename}, line {place.lineno}: {words}" if place is not None else words


def _place(frames: Sequence[traceback.FrameSummary]) -> traceback.FrameSummary | None:
    """Return the innermost frame of a person's files, below the module whose import fails; else of that module's."""
    # Those of the import system have no file.
    frames = [frame for frame in frames if not frame.filename.startswith("<")]
    imported = [number for number, frame in enumerate(frames) if frame.name == "<module>"]
    frames = frames[imported[-1] :] if imported else frames
    own = [frame for frame in frames if not _is_installed(Path(frame.filename))]
    of_module = [frame for frame in frames if not imported or frame.filename == frames[0].filename]
    return (own or of_module)[-1] if frames else None


def _is_installed(file: Path) -> bool:
    parts = {"site-packages", "dist-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}"}
    return file.is_relative_to(Path(__file__).parent) or not parts.isdisjoint(file.parts)
