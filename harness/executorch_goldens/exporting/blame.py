"""Whose an exception is: the harness's own, or that of the release or the case that it works for.

What a release or a case raises is the verdict of a cell. What the harness's own code raises says nothing about the
cell: it is an `OwnError`, and ends the run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

from executorch_goldens.errors import HarnessError

P = ParamSpec("P")
R = TypeVar("R")

#: The code of the functions that `handed_on` marks.
_HANDED_ON: set[CodeType] = set()

#: Rooms whose code replaces the release's, and raises what the release would.
REPLACING = ("executorch_goldens.patches.", "executorch_goldens.patches.shortcuts.")
#: What the harness calls with arguments of its own; ExecuTorch and cases call it through frames of their own.
LIBRARIES = ("numpy.",)
#: What the machine had too little of is no defect of the code that asked for it.
OF_THE_MACHINE = (MemoryError, OSError)


def handed_on(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that hands on what others raise: native code that it calls, or a case that calls it wrongly."""
    _HANDED_ON.add(function.__code__)
    return function


class OwnError(HarnessError, RuntimeError):
    """An exception of the harness's own code; never the verdict of a cell.

    Attributes
    ----------
    stage
        How far the export had come; see `executorch_goldens.artifact.Failure`.
    where
        File, line and function.
    error
        Class and message of the exception.
    """

    def __init__(self, stage: str, where: str, error: str) -> None:
        super().__init__(stage, where, error)
        self.stage = stage
        self.where = where
        self.error = error

    def __str__(self) -> str:
        return (
            f"the harness itself failed (stage {self.stage}): {self.error} ({self.where}). "
            "This says nothing about the cell: please report it as a defect of the harness"
        )


def own_error(stage: str, error: BaseException) -> OwnError | None:
    """Return what to raise for `error`, the first cause of a failure, where the harness's own code raised it.

    The innermost frame decides, libraries aside: it is the harness's, and neither it nor a frame of the harness that
    called it without others between them is `handed_on`.
    """
    if isinstance(error, (HarnessError, *OF_THE_MACHINE)):
        return None
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    while frames and _module(frames[-1][0]).startswith(LIBRARIES):
        frames.pop()
    innermost = frames[-1] if frames else None
    while frames and _is_own(frames[-1][0]):
        frame, _ = frames.pop()
        if frame.f_code in _HANDED_ON:
            return None
    if innermost is None or not _is_own(innermost[0]):
        return None
    frame, line = innermost
    file = Path(*Path(frame.f_code.co_filename).parts[-3:])
    message = (str(error).strip().splitlines() or [""])[0]
    described = f"{type(error).__name__}: {message}".removesuffix(": ")
    return OwnError(stage, f"{file}, line {line}, in {frame.f_code.co_name}", described)


def _is_own(frame: FrameType) -> bool:
    return _module(frame).startswith("executorch_goldens.") and not _module(frame).startswith(REPLACING)


def _module(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '')}."
