"""A template as the sweep sees it: a process, a pipe with its answers, the jobs that it has."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executorch_goldens.sweep.folder import Folder
from executorch_goldens.sweep.schedule import Job
from executorch_goldens.zoo.variations import Variation

#: States of a process that has ended, and of one that is no more (man 5 proc, /proc/PID/stat, field 3).
ENDED = ("Z", "X", "")


def state_of(process: int) -> str:
    """Return the state of a process, a letter; empty where it is no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


@dataclass
class TemplateProcess:
    """A running template, its jobs and their processes.

    Attributes
    ----------
    finished
        Whether it was asked to end, because no export is wanted of it any more.
    expected
        When the next answer of each job that it has is due, or is looked into, by the job's number, in seconds of
        `time.monotonic`.
    ends
        When each job that has started has ended or been ended at the latest, by its number.
    over
        Numbers of the jobs that had ended when their answers were looked into last.
    """

    variation: Variation
    process: subprocess.Popen[bytes]
    answers: io.FileIO
    log: Path
    started: float = field(default_factory=time.monotonic)
    ready: bool = False
    finished: bool = False
    buffer: bytes = b""
    running: dict[int, Job] = field(default_factory=dict)
    children: dict[int, int] = field(default_factory=dict)
    expected: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)

    def send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        # A template that has died is noticed, and its jobs are delivered, where its answers end.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def owes(self, number: int, now: float) -> bool:
        """Return whether an answer is due: the job is not started, is past its limit, or was ended at the last look."""
        if number not in self.children or now > self.ends[number] or number in self.over:
            return True
        if state_of(self.children[number]) in ENDED:
            self.over.add(number)
        return False

    def is_starved(self) -> bool:
        """Return whether the process waits for a processor or for a disk."""
        return state_of(self.process.pid) in ("R", "D")

    def read(self) -> bytes:
        """Return new answers; empty at the end of its answers."""
        return os.read(self.answers.fileno(), 1 << 16)

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
        if status != 0:
            self.kill_children()
        return status

    def kill_children(self) -> None:
        """Kill the processes of its exports; each leads a process group."""
        for process in self.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)


class Standby:
    """Templates that outlast a sweep: the next one exports in them.

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
