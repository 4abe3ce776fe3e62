"""A template as the sweep sees it: a process, a socket with its answers, the jobs that it has."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.exporting.limits import Idleness
from executorch_goldens.sweep.folder import Folder
from executorch_goldens.sweep.messages import ExportRequest, encoded
from executorch_goldens.sweep.schedule import Job
from executorch_goldens.zoo.variations import Variation

#: Bytes that an answer may have.
LARGEST_ANSWER = 1 << 16


def state_of(process: int) -> str:
    """Return the state of a process, a letter; empty where it is no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


@dataclass
class RunningJob:
    """A job that a template has.

    Attributes
    ----------
    due
        When its next word is due, in seconds of `time.monotonic`.
    answering
        The process that should say it: the template's, then the one that forks the export's.
    process, result
        Its process, and the file for its artifact; None until it has started.
    """

    job: Job
    due: float
    answering: int
    process: int | None = None
    result: io.FileIO | None = None


@dataclass
class TemplateProcess:
    """A running template.

    Attributes
    ----------
    finished
        Whether it was asked to end, because no export is wanted of it any more.
    running
        The jobs that it has, by their numbers.
    """

    variation: Variation
    process: subprocess.Popen[bytes]
    answers: socket.socket
    log: Path
    idleness: Idleness
    looked: float = field(default_factory=time.monotonic)
    ready: bool = False
    finished: bool = False
    running: dict[int, RunningJob] = field(default_factory=dict)

    def jobs(self) -> list[Job]:
        """Return the jobs that it has; from any thread."""
        return [each.job for each in list(self.running.values())]

    def send(self, request: ExportRequest) -> None:
        assert self.process.stdin is not None
        # A template that has died is noticed, and its jobs are delivered, where its answers end.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(encoded(request) + b"\n")
            self.process.stdin.flush()

    def read(self) -> tuple[bytes, list[int]]:
        """Return the next answer, and the descriptors that it brings; empty at the end of its answers."""
        try:
            answer, descriptors, _, _ = socket.recv_fds(self.answers, LARGEST_ANSWER, 1)
        except ConnectionResetError:
            return b"", []
        return answer, descriptors

    def finish(self) -> None:
        """Ask it to end, which it does as soon as its requests have; its answers end then."""
        assert self.process.stdin is not None
        self.finished = True
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self, patience: float) -> int:
        """Wait at most `patience` seconds for its end, then kill it; return its exit status. Nothing of it is left."""
        assert self.process.stdin is not None
        # Requests that a template did not read before it died are lost with it.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            status = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.answers.close()
        for each in self.running.values():
            if each.result is not None:
                each.result.close()
        if status != 0:
            self.kill_children()
        return status

    def kill_children(self) -> None:
        """Kill the processes of its exports; each leads a process group."""
        for process in filter(None, (each.process for each in self.running.values())):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)


class Standby:
    """Templates of one sweep, or of several that export in them one after the other.

    Parameters
    ----------
    targets
        Exports that they make before they serve.

    Attributes
    ----------
    numbers
        Numbers of jobs: no two sweeps have the same.
    """

    def __init__(self, targets: Iterable[str]) -> None:
        self.targets = sorted(targets)
        self.folder = Folder.make()
        self.templates: dict[Variation, TemplateProcess] = {}
        self.numbers = itertools.count()

    def records(self) -> list[Path]:
        """Return the files in which templates have recorded what they depend on."""
        return sorted(self.folder.path.glob("*.json"))

    def end(self) -> None:
        """End them all at once; the next sweep starts others."""
        for template in self.templates.values():
            template.end(0)
        self.templates.clear()
        for record in self.records():
            record.unlink()

    def close(self) -> None:
        """End them, and delete their folder."""
        self.end()
        self.folder.delete()
