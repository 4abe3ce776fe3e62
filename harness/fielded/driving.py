"""Drives `harness.fielded.running` in a release's environment: what is run there, and what came of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.exporting.worker import HARNESS_ERROR, with_harness
from harness.fielded import corpus
from harness.fielded.corpus import Ran
from harness.fielded.running import MAIN, MARK
from harness.sweeping.settings import worker_environment
from harness.sweeping.sweep import exit_reason, last_lines

#: Seconds that the runs of one program may take: many times what the slowest of the zoo takes on a busy machine.
LIMIT = 120.0
#: Seconds that an environment that could not start may take to end.
PATIENCE = 10.0


class RuntimeUnusableError(HarnessError, RuntimeError):
    """A release's environment that cannot run programs at all; the message says why."""


@dataclass(frozen=True)
class Ended:
    """What came of a program.

    Attributes
    ----------
    ran
        What came of each of its runs; empty where the process died.
    casualty
        How the process died, or that it took too long, and in which run; empty where it did not.
    log
        What the runtime wrote.
    """

    ran: tuple[Ran, ...]
    casualty: str
    log: str


def run(interpreter: Path, programs: Sequence[Path], jobs: int) -> Iterator[tuple[Path, Ended]]:
    """Run programs in the release that `interpreter` has, and yield each with what came of it, as they end.

    Raises
    ------
    RuntimeUnusableError
        If the environment cannot run programs, or its process dies.
    harness.fielded.corpus.CorpusError
        For a program that cannot be read.
    """
    if not programs:
        return
    with tempfile.TemporaryDirectory(prefix="fielded-") as made, _started(interpreter, Path(made)) as runner:
        waiting = list(enumerate(programs))[::-1]
        running: dict[int, Path] = {}
        while waiting or running:
            while waiting and len(running) < jobs:
                number, program = waiting.pop()
                running[number] = program
                runner.send(_request(number, program, Path(made)))
            answer = runner.answer()
            if "status" in answer:
                program = running.pop(answer["id"])
                yield program, _ended(answer, program, Path(made))


class _Runner:
    def __init__(
        self, interpreter: Path, process: subprocess.Popen[bytes], answers: io.BufferedReader, log: Path
    ) -> None:
        self.interpreter = interpreter
        self.process = process
        self.answers = answers
        self.log = log

    def send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        line = self.answers.readline()
        if not line:
            status = self.process.wait()
            raise RuntimeUnusableError(
                f"{self.interpreter} cannot run programs ({exit_reason(status)}):\n{last_lines(self.log)}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def _started(interpreter: Path, folder: Path) -> Iterator[_Runner]:
    reader, writer = os.pipe()
    log = folder / "runner.log"
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*with_harness(interpreter, MAIN), str(writer)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(writer,),
                env=worker_environment(interpreter, 0),
                start_new_session=True,
            )
    except OSError as error:
        os.close(reader)
        raise RuntimeUnusableError(f"{interpreter} cannot be run: {error.strerror}") from error
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        runner = _Runner(interpreter, process, answers, log)
        try:
            # That it is ready.
            runner.answer()
            yield runner
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _request(number: int, program: Path, folder: Path) -> dict[str, Any]:
    return {
        "id": number,
        "program": str(program.absolute()),
        "result": str(folder / f"{number}.result"),
        "log": str(folder / f"{number}.log"),
        "limit": LIMIT,
    }


def _ended(answer: dict[str, Any], program: Path, folder: Path) -> Ended:
    result, log = folder / f"{answer['id']}.result", folder / f"{answer['id']}.log"
    try:
        written = log.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        written = ""
    try:
        if answer["status"] == 0 and not answer["timed_out"]:
            return Ended(tuple(corpus.read_results(result)), "", written)
    finally:
        for file in (result, log):
            file.unlink(missing_ok=True)
    if answer["status"] == HARNESS_ERROR and not answer["timed_out"]:
        last = (written.strip().splitlines() or ["?"])[-1]
        raise RuntimeUnusableError(f"{program}: {last}")
    begun = [line.removeprefix(MARK) for line in written.splitlines() if line.startswith(MARK)]
    how = f"no end within {LIMIT:g} s" if answer["timed_out"] else exit_reason(answer["status"])
    return Ended((), f"{how} on {begun[-1]}" if begun else how, written)
