"""Decides whether an exception is the harness's fault, or that of the release or the case.

What a release or a case raises is the verdict of a cell. What the harness's own code raises says nothing about the
program: it is an `OwnError`. The cell is ``crashed``, with the harness named as the cause, and the run goes on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

from executorch_goldens import extensions
from executorch_goldens.artifact import OfHarness
from executorch_goldens.errors import HarnessError
from executorch_goldens.patches import SHORTCUTS

#: A frame, and the line in it.
Place = tuple[FrameType, int]

P = ParamSpec("P")
R = TypeVar("R")

#: The code of the functions that `handed_on` marks, and of those that `judging` does.
_HANDED_ON: set[CodeType] = set()
_JUDGING: set[CodeType] = set()

#: The room whose code replaces the release's, as shortcuts do, and raises what the release would.
REPLACING = "executorch_goldens.patches."
#: Libraries that the harness calls with arguments of its own; ExecuTorch and cases call it through frames of their own.
LIBRARIES = ("numpy.",)
#: Exceptions for a shortage of the machine, which is no defect of the requesting code.
OF_THE_MACHINE = (MemoryError, OSError)


def handed_on(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that passes exceptions on: from native code, or from a case that misuses it."""
    _HANDED_ON.add(function.__code__)
    return function


def judging(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that only the harness's own work can make raise, also in others' code that it calls."""
    _JUDGING.add(function.__code__)
    return function


@dataclass(eq=False)
class OwnError(HarnessError, RuntimeError):
    """An exception of the harness's own code; says nothing about the program."""

    casualty: OfHarness

    def __str__(self) -> str:
        """Return a line for the log; a run has the words of its casualty."""
        return f"stage {self.casualty.stage}: {self.casualty.error} ({self.casualty.where})"


def own_error(stage: str, error: BaseException, raised: BaseException | None = None) -> OwnError | None:
    """Return the error to raise for `error`, the first cause of a failure, where it is the harness's own.

    It is where a function that is `judging` was called. Otherwise the innermost frame decides, libraries aside: it is
    the harness's, and neither it nor a frame of the harness that called it without others between them is `handed_on`.

    Parameters
    ----------
    raised
        The exception raised from `error`; by default `error` itself.
    """
    if isinstance(error, (HarnessError, *OF_THE_MACHINE)):
        return None
    frames = list(traceback.walk_tb(error.__traceback__))
    outer = [] if raised is None or raised is error else list(traceback.walk_tb(raised.__traceback__))
    if any(frame.f_code in _JUDGING for frame, _ in (*outer, *frames)):
        return described(stage, error, next(filter(_of_own, reversed((*outer, *frames)))))
    innermost = _raised_by_own(frames)
    return described(stage, error, innermost) if innermost is not None else None


def described(stage: str, error: BaseException, place: Place | None = None) -> OwnError:
    """Return an error of the harness's own; `place` is the innermost frame of the harness's by default."""
    place = place or next(filter(_of_own, reversed(list(traceback.walk_tb(error.__traceback__)))), None)
    if place is None:
        return OwnError(OfHarness(stage, in_a_line(error), "no frame of the harness"))
    frame, line = place
    file = Path(*Path(frame.f_code.co_filename).parts[-3:])
    where = f"{file}, line {line}, in {frame.f_code.co_name}"
    return OwnError(OfHarness(stage, in_a_line(error), where))


def in_a_line(error: BaseException) -> str:
    """Return the class and the first line of an error."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}".removesuffix(": ")


def _raised_by_own(frames: list[Place]) -> Place | None:
    """Return the innermost frame if the harness's own code raised, and did not hand on."""
    while frames and _module(frames[-1][0]).startswith(LIBRARIES):
        frames.pop()
    innermost = frames[-1] if frames else None
    while frames and _is_own(frames[-1][0]):
        frame, _ = frames.pop()
        if frame.f_code in _HANDED_ON:
            return None
    return innermost if innermost is not None and _of_own(innermost) else None


def _of_own(place: Place) -> bool:
    return _is_own(place[0])


def _is_own(frame: FrameType) -> bool:
    name = _module(frame)
    replacing = (REPLACING, *(f"{each.install.__module__}." for each in SHORTCUTS))
    return name.partition(".")[0] in extensions.packages() and not name.startswith(replacing)


def _module(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '')}."
