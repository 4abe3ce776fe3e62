"""A zoo in which exports meet with faults: ``--models lab.faults.zoo``, on ``xnnpack-fp32``, whose programs run.

Two cases are sound, and are there for what becomes of them beside the others. ``waits`` says that its export is going
on, and continues on a signal: the fault then happens in the middle of an export.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from executorch_goldens import Data, Example, case

#: Names the folder in which ``waits`` says that it waits, and looks whether it may go on.
FOLDER = "EXECUTORCH_GOLDENS_FAULTS"
WAITING, GO = "waiting", "go"

#: More than any limit that a fault is made with. Only what is written to takes memory of the machine.
MUCH = 64 << 30
#: Bytes that are written to at a time, and most of them: less than a machine has that these tests are run on.
STEP, MOST = 64 << 20, 6 << 30


def linear(data: Data) -> Example:
    return Example(torch.nn.Linear(4, 3), (data.tensor("x", 2, 4),))


@case(guards="an export beside which others meet with faults")
def sound(data: Data) -> Example:
    return linear(data)


@case(guards="another")
def sound_as_well(data: Data) -> Example:
    return Example(torch.nn.ReLU(), (data.tensor("x", 2, 4),))


@case(guards="an export during which a fault hits the run")
def waits(data: Data) -> Example:
    if folder := os.environ.get(FOLDER):
        Path(folder, f"{WAITING}-{os.getpid()}").touch()
        while not Path(folder, GO).exists():
            time.sleep(0.02)
    return linear(data)


# Processes that die, or do not


def dies_of(number: signal.Signals) -> Callable[[Data], Example]:
    def build(data: Data) -> Example:
        print("last words before the signal", flush=True)
        os.kill(os.getpid(), number)
        raise AssertionError("unreachable")

    return build


for _number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
    case(guards="an export that a signal ends", name=f"dies-of-{_number.name.lower()}")(dies_of(_number))


@case(guards="an export that hangs in Python")
def hangs_in_python(data: Data) -> Example:
    while True:
        time.sleep(1.0)


@case(guards="an export that hangs in C, where no handler of Python's runs")
def hangs_in_c(data: Data) -> Example:
    # It keeps the interpreter's lock.
    while True:
        ctypes.PyDLL(None).pause()


@case(guards="an export that hangs and does not heed SIGTERM")
def ignores_sigterm(data: Data) -> Example:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1.0)


def lasting(*, session: bool) -> None:
    """Start a process that outlives its export, in a session of its own or in the export's process group."""
    code = "import os, sys, time; os.fork() and os._exit(0); time.sleep(3600)"
    subprocess.run([sys.executable, "-c", code], start_new_session=session, check=True)


@case(guards="an export that leaves a process in its process group")
def leaves_a_process(data: Data) -> Example:
    lasting(session=False)
    return linear(data)


@case(guards="an export that leaves a process in a session of its own")
def leaves_a_session(data: Data) -> Example:
    lasting(session=True)
    return linear(data)


@case(guards="an export that dies and leaves a process running")
def dies_and_leaves_a_process(data: Data) -> Example:
    lasting(session=True)
    lasting(session=False)
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("unreachable")


# Memory


@case(guards="an export that asks torch for more memory than there may be")
def much_in_torch(data: Data) -> Example:
    torch.empty(MUCH, dtype=torch.uint8)
    raise AssertionError("it was given")


@case(guards="an export that asks Python for ever more memory")
def much_in_python(data: Data) -> Example:
    held = []
    for _ in range(MOST // STEP):
        held.append(bytearray(STEP))
    raise AssertionError("it was given")


@case(
    guards="an export that asks C++ for more memory than there may be, where nothing catches what it raises"
)
def much_in_cpp(data: Data) -> Example:
    new = ctypes.CDLL("libstdc++.so.6")._Znwm
    new.argtypes, new.restype = [ctypes.c_size_t], ctypes.c_void_p
    new(MUCH)
    raise AssertionError("it was given")


@case(guards="an export that says in other words that it was given no memory")
def much_behind_another_error(data: Data) -> Example:
    try:
        torch.empty(MUCH, dtype=torch.uint8)
    except RuntimeError:
        raise ValueError("the tables of this model cannot be made")  # noqa: B904 - as releases do
    raise AssertionError("it was given")
