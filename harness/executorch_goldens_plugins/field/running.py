"""Runs programs in another interpreter, each in a process of its own, within limits."""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from executorch_goldens.artifact import died
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting.limits import WALL
from executorch_goldens.files import untrusted
from executorch_goldens.files.logged import explained
from executorch_goldens.settings.exports import absolute, worker_environment
from executorch_goldens.words import casualties
from executorch_goldens_plugins.field.format import (
    LARGEST_TENSOR,
    MOST_TENSORS,
    Dimensions,
    FrozenProgram,
    FrozenTensor,
    Name,
)

#: The script for the other interpreter.
RUNNER = Path(__file__).with_name("runner.py")
#: Seconds that importing an engine may take: 3 to 10 on an idle machine, and several minutes were seen on a busy one.
IMPORT_LIMIT = 900.0
#: Seconds that an answer may take beyond what a program may.
ANSWER_LIMIT = 600.0
#: Seconds that the runner may take to end.
PATIENCE = 10.0
#: Bytes of what a program prints, and lines that are shown of what an interpreter does.
LARGEST_LOG = 1 << 26
LOG_LINES = 4
#: Characters of an error that are shown.
SHOWN = 500

#: Distributions to install for an engine.
INSTALLED_AS = {"executorch": "executorch and torch", "tosa-reference-model": "tosa-tools"}


class RunningError(HarnessError):
    """An interpreter cannot run programs; never a result of a program. The message names the way out."""


@dataclass(frozen=True)
class ProgramLimits:
    """Resource limits of a program.

    Attributes
    ----------
    seconds
        Seconds from the beginning of its process to the end, all samples together.
    megabytes
        Address space in 2**20 bytes, beyond what the process begins with. A thread that allocates reserves 128.
    """

    seconds: float = 60.0
    megabytes: int = 8192


@dataclass(frozen=True)
class Ran:
    """The result of running a program.

    Attributes
    ----------
    outputs
        Outputs for each sample that it came to an end with, in order.
    stopped
        Why it came no further: ``refused``, ``crashed``, ``timed-out``; empty where it ended with all.
    reason
        The engine's own words.
    seconds
        Seconds that its process took.
    """

    outputs: tuple[tuple[FrozenTensor, ...], ...]
    stopped: str
    reason: str
    seconds: float


#: Ends of a program that is not run to its end.
REFUSED, CRASHED, TIMED_OUT = "refused", "crashed", "timed-out"


class Runtime:
    """Another interpreter that runs programs; a context.

    Parameters
    ----------
    interpreter
        A Python that has what `engines` need. This project need not be there.
    engines
        Some of `executorch_goldens_plugins.field.format.ENGINES`.

    Attributes
    ----------
    versions
        Its installed versions, once the context is entered.

    Raises
    ------
    RunningError
        When it is entered, where the interpreter cannot be run, or lacks an engine.
    """

    def __init__(
        self, interpreter: Path, engines: Collection[str], limits: ProgramLimits | None = None
    ) -> None:
        self.interpreter = absolute(interpreter)
        self.engines = sorted(engines)
        self.limits = limits or ProgramLimits()
        self.versions: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="goldens-programs-")
        reader, writer = os.pipe()
        self._answers = io.FileIO(reader)
        self._log = Path(self._folder.name) / "log"
        environment = worker_environment(self.interpreter, 0)
        environment.pop("PYTHONPATH", None)
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [str(self.interpreter), "-I", str(RUNNER), str(writer), *self.engines],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writer,),
                    env=environment,
                    cwd=self._folder.name,
                    start_new_session=True,
                )
        except OSError as error:
            self._answers.close()
            self._folder.cleanup()
            raise RunningError(
                f"{self.interpreter} cannot be run: {error.strerror}. Name the Python of an environment that has "
                f"{self._needs()}"
            ) from error
        finally:
            os.close(writer)
        try:
            first = self._answer(IMPORT_LIMIT)
            if "missing" in first:
                raise RunningError(
                    f"{self.interpreter} cannot import {first['missing']}: {first['error'][:SHOWN]}. It needs "
                    f"{INSTALLED_AS[first['missing']]}: install them there, name another interpreter, or choose "
                    "cells that do without"
                )
        except BaseException:
            self._end()
            raise
        self.versions = first["versions"]
        return self

    def __exit__(self, *raised: object) -> None:
        self._end()

    def run(self, program: FrozenProgram) -> Ran:
        """Run a program on all its samples; raise `RunningError` where the interpreter itself fails."""
        with tempfile.TemporaryDirectory(dir=self._folder.name) as name:
            folder = Path(name)
            _put(program, folder)
            request = {
                "folder": name,
                "seconds": self.limits.seconds,
                "megabytes": self.limits.megabytes,
            }
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise self._died() from error
            answer = self._answer(WALL * self.limits.seconds + ANSWER_LIMIT)
            return _taken(program, folder, answer, self.limits)

    def _answer(self, seconds: float) -> dict[str, Any]:
        """Wait for the next line of the runner."""
        deadline, line = time.monotonic() + seconds, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise RunningError(
                        f"{self.interpreter} does not answer for {seconds:g} s; {self._last_words()}"
                    )
                if not (part := os.read(self._answers.fileno(), 1 << 16)):
                    raise self._died()
                line += part
        found: dict[str, Any] = json.loads(line)
        return found

    def _died(self) -> RunningError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        status = self._process.returncode
        how = casualties.reason(died(status)) if status is not None else "closed its answers"
        return RunningError(
            f"{self.interpreter} ended ({how}) where it was to run programs; {self._last_words()}"
        )

    def _last_words(self) -> str:
        lines = _last_lines(self._log)
        return (
            f"its last output: {lines}"
            if lines
            else "it printed nothing. Does it run, and has it ExecuTorch?"
        )

    def _needs(self) -> str:
        return " and ".join(INSTALLED_AS[engine] for engine in self.engines)

    def _end(self) -> None:
        """End the runner, and whatever it runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._answers.close()
        self._folder.cleanup()


def _put(program: FrozenProgram, folder: Path) -> None:
    """Leave a program and its inputs where the runner takes them."""
    (folder / "program").write_bytes(program.data)
    for number, (_, data) in enumerate(program.files):
        (folder / f"data-{number}").write_bytes(data)
    samples = []
    for number, sample in enumerate(program.samples):
        steps = []
        for at, (method, step) in enumerate(sample.calls()):
            metas = []
            for index, value in enumerate(step):
                file = f"in-{number}-{at}-{index}"
                (folder / file).write_bytes(value.data)
                metas.append(
                    {"dtype": value.dtype, "shape": value.shape, "strides": value.strides, "file": file}
                )
            steps.append({"method": method, "inputs": metas})
        samples.append(steps)
    job = {"engine": program.engine, "samples": samples, "files": len(program.files)}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


class _Output(msgspec.Struct):
    """An output as a program describes it: it may be anything."""

    dtype: Name
    shape: Dimensions


def _taken(program: FrozenProgram, folder: Path, answer: Mapping[str, Any], limits: ProgramLimits) -> Ran:
    """Return the files that a program wrote to its folder. They may hold anything."""
    outputs: list[tuple[FrozenTensor, ...]] = []
    stopped, reason = _end_of(folder, answer, limits)
    for number, sample in enumerate(program.samples):
        if not (folder / f"out-{number}.json").exists():
            break
        try:
            outputs.append(_outputs(folder, number))
        except (ValueError, OSError, msgspec.MsgspecError, RecursionError) as error:
            stopped, reason = REFUSED, f"its outputs for sample {sample.name} cannot be read: {error}"
            break
    if not stopped and len(outputs) < len(program.samples):
        stopped, reason = CRASHED, f"ended without a result for sample {program.samples[len(outputs)].name}"
    return Ran(tuple(outputs), stopped, reason, float(answer["seconds"]))


def _outputs(folder: Path, number: int) -> tuple[FrozenTensor, ...]:
    outputs = msgspec.json.decode(untrusted.contents(folder / f"out-{number}.json"), type=list[_Output])
    if len(outputs) > MOST_TENSORS:
        raise ValueError(f"{len(outputs)} outputs")
    values = []
    for index, output in enumerate(outputs):
        data = untrusted.contents(folder / f"out-{number}-{index}", LARGEST_TENSOR)
        values.append(FrozenTensor(output.dtype, output.shape, data))
    return tuple(values)


def _end_of(folder: Path, answer: Mapping[str, Any], limits: ProgramLimits) -> tuple[str, str]:
    """Return how a program ended, where it did not come to its end, and why."""
    status = answer["status"]
    if answer["timed_out"]:
        return TIMED_OUT, f"not done within {limits.seconds:g} s"
    if status == 0:
        return "", ""
    error, log = _text(folder / "error"), _text(folder / "log")
    if status > 0 and error:
        return REFUSED, explained(error, log)[:SHOWN]
    return CRASHED, explained(casualties.reason(died(status)), log)[:SHOWN]


def _text(path: Path) -> str:
    """Return the content of a file, empty if it cannot be read."""
    try:
        return untrusted.contents(path, LARGEST_LOG).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _last_lines(path: Path) -> str:
    """Return the last that was written to a file, in one line."""
    lines = [line.strip() for line in _text(path).splitlines() if line.strip()]
    return " | ".join(lines[-LOG_LINES:])[-SHOWN:]
