"""Runs a function in a fork of this process, so that it cannot take this one with it."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

import torch

from executorch_goldens.exporting.limits import WALL, Idleness, limit_processor

T = TypeVar("T")

#: Seconds between two looks at whether a function gets on.
LOOK = 0.5


class ApartError(RuntimeError):
    """A function that ended its process, or was stopped; the message says how."""


def run_apart(function: Callable[[], T], limit: float) -> T:
    """Return `function()`, called in a fork of this process that prints to this one's output.

    ExecuTorch makes its thread pool again after a fork, and torch computes on one thread there.

    Parameters
    ----------
    limit
        Seconds of processor time after which it is stopped; `WALL` times as many where it is idle.

    Raises
    ------
    ApartError
        If it raises, dies or is stopped.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.close(reader)
            limit_processor(limit)
            torch.set_num_threads(1)
            with os.fdopen(writer, "wb") as result:
                pickle.dump(function(), result)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    idleness = Idleness(process)
    answer = b""
    with os.fdopen(reader, "rb", buffering=0) as source:
        while True:
            if not select.select([source], [], [], LOOK)[0]:
                idleness.look(2 * LOOK)
                if idleness.idle <= WALL * limit:
                    continue
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                raise ApartError(f"it was idle for more than {WALL * limit:g} s")
            if not (chunk := source.read(1 << 16)):
                break
            answer += chunk
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code == -signal.SIGXCPU:
        raise ApartError(f"it took more than {limit:g} s of processor time")
    if code < 0:
        raise ApartError(f"the process that looked into it died of {signal.Signals(-code).name}")
    if code > 0:
        raise ApartError("it raises an exception")
    return pickle.loads(answer)  # type: ignore[no-any-return]
