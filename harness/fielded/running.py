"""Runs programs in the release that is installed, each in a process of its own.

`harness.fielded.driving` starts it by `MAIN` in a release's environment, where it imports torch and the runtime once
and forks for each program. Requests and answers are those of `harness.exporting.worker.Template`; a request::

    {"id": 7, "program": "<file of harness.fielded.corpus>", "result": "<file>", "log": "<file>", "limit": 60.0}

A child leaves what came of each run in the file ``result``. What the runtime writes goes to the log.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.exporting import worker
from harness.fielded import corpus
from harness.fielded.corpus import Input, Program, Ran, Run
from harness.targets import REFERENCE_MODEL

#: What a driver runs in a release's environment.
MAIN = "from harness.fielded.running import main; main()"

#: Bytes of memory that a program may take beside what the process has when it begins. The largest of the zoo takes less
#: than a hundredth.
MEMORY = 4 * 2**30


def main() -> None:
    """Serve requests from standard input; the argument is the file descriptor to answer on."""
    import torch
    import tosa_reference_model  # noqa: F401
    from executorch.extension.pybindings import portable_lib  # noqa: F401

    from harness.exporting import numerics  # noqa: F401 - here, not in each child

    answers = int(sys.argv[1])
    os.set_inheritable(answers, False)
    worker.set_kernels(1, onednn=False)

    def start(request: dict[str, Any]) -> int:
        process = os.fork()
        if process == 0:
            os.close(answers)
            torch.set_num_threads(1)
            _finish(request)
        return process

    template = worker.Template(0, answers, start)
    template.answer({"ready": True})
    template.serve()
    os._exit(0)


def _finish(request: dict[str, Any]) -> None:
    status = worker.HARNESS_ERROR
    try:
        os.setpgid(0, 0)
        worker.redirect(request["log"])
        limit_memory()
        # The reference model has a debugger look at it before it dies.
        os.environ["PATH"] = ""
        corpus.write(Path(request["result"]), run(corpus.read(Path(request["program"]))))
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def limit_memory() -> None:
    """Let this process have `MEMORY` more than it has (Linux, `proc_pid_statm(5)`)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def run(program: Program) -> list[Ran]:
    """Run a program on everything that it is to be run on."""
    return [_run(program, each) for each in program.runs]


def _run(program: Program, run: Run) -> Ran:
    from harness.exporting import numerics

    binary = program.binaries[run.binary]
    print(f"{MARK}{run.name}", file=sys.stderr, flush=True)
    # What a program cannot be run on for a reason of its file is no refusal of the runtime's.
    if program.runs_in == REFERENCE_MODEL:
        arrays = [array_of(each) for inputs in run.steps for each in inputs]
    else:
        steps = [tensors_of(inputs) for inputs in run.steps]
    try:
        if program.runs_in == REFERENCE_MODEL:
            return Ran(tuple(map(corpus.tensor_of, numerics.run_model(binary, arrays))))
        return Ran(numerics.in_runtime(binary, steps))
    except Exception as error:
        return Ran(error=f"{type(error).__name__}: {error}")


#: Begins the line of a log that says which run comes next.
MARK = "fielded run: "


def array_of(given: Input) -> np.ndarray[Any, Any]:
    """Return an input of a payload."""
    return np.frombuffer(given.data, np.dtype(given.dtype)).reshape(given.shape).copy()


def tensors_of(inputs: Sequence[Input]) -> list[Any]:
    """Return the inputs of a step as they lay in memory."""
    made: list[Any] = []
    for given in inputs:
        made.append(_tensor(given) if given.same_as is None else made[given.same_as])
    return made


def _tensor(given: Input) -> Any:
    import torch

    dtype = getattr(torch, given.dtype)
    tensor = torch.empty_strided(given.shape, given.strides, dtype=dtype)
    if given.data:
        tensor.copy_(torch.frombuffer(bytearray(given.data), dtype=dtype).reshape(given.shape))
    return tensor
