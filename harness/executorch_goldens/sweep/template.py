"""A template as the sweep sees it: a process, a socket with its answers, the jobs that it has."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.exporting.limits import Idleness
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import Settings, absolute, worker_environment
from executorch_goldens.sweep.folder import Folder
from executorch_goldens.sweep.messages import (
    Alive,
    Answer,
    Ended,
    ExportRequest,
    Ready,
    Started,
    TemplateRequest,
    decoded,
    encoded,
)
from executorch_goldens.sweep.schedule import Job, Schedule
from executorch_goldens.sweep.worker import MAIN, with_harness
from executorch_goldens.zoo.variations import Variation, surrounding_variables

#: Seconds of processor time that a template may take to import torch and ExecuTorch and to warm up, and that it may be
#: idle meanwhile. Measured 8 to 25 s on two cores with byte-code in place; without it several times that.
TEMPLATE_LIMIT = 300.0

#: Seconds between two looks at whether one that starts gets on.
START_LOOK = 5.0

#: Seconds that a template with exports may be silent. One that waits for a processor or a disk gets as many again, as
#: often as needed.
ANSWER_LIMIT = 60.0
#: How often it says that it is alive in that time.
BEATS = 4

#: Seconds that a template may take to end when its requests have.
PATIENCE = 10.0

#: Characters of an answer that is none which an error shows.
SHOWN_ANSWER = 200

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
    answering
        The process that should say something of it: the template's, then the one that forks the export's.
    due
        When its next word is due, in seconds of `time.monotonic`.
    process, result
        Its process, and the file for its artifact; None until it has started.
    """

    job: Job
    answering: int
    due: float = field(default_factory=lambda: time.monotonic() + ANSWER_LIMIT)
    process: int | None = None
    result: io.FileIO | None = None

    def is_overdue(self) -> bool:
        """Return whether a template should have said something about it, and could have."""
        now = time.monotonic()
        if self.due > now:
            return False
        self.due = now + ANSWER_LIMIT
        # One that waits for a processor or for a disk could not.
        return state_of(self.answering) not in ("R", "D")


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

    def receive(self) -> Answer | None:
        """Return the next answer, None at their end; raise ValueError for what is none."""
        try:
            line, descriptors, _, _ = socket.recv_fds(self.answers, LARGEST_ANSWER, 1)
        except ConnectionResetError:
            return None
        if not line:
            return None
        shown = line.decode(errors="backslashreplace")[:SHOWN_ANSWER]
        try:
            answer: Answer = decoded(line, Answer)
        except ValueError as error:
            raise ValueError(shown) from error
        if isinstance(answer, Ready):
            self.ready = True
            return answer
        if isinstance(answer, Started | Ended) and answer.id not in self.running:
            raise ValueError(shown)
        for number in answer.ids if isinstance(answer, Alive) else (answer.id,):
            if (running := self.running.get(number)) is not None:
                running.due = time.monotonic() + ANSWER_LIMIT
        if isinstance(answer, Started):
            running = self.running[answer.id]
            running.process, running.answering = answer.process, answer.template
            running.result = io.FileIO(descriptors[0])
        return answer

    def is_hung(self) -> bool:
        """Return whether it is silent about an export."""
        return self.ready and any(each.is_overdue() for each in self.running.values())

    def is_stuck(self) -> bool:
        """Return whether it takes too long to get ready."""
        if self.ready:
            return False
        now = time.monotonic()
        if self.looked + START_LOOK <= now:
            self.looked = now
            self.idleness.look(2 * START_LOOK)
        return max(self.idleness.used, self.idleness.idle) > TEMPLATE_LIMIT

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


def other_home(folder: Path) -> Path:
    """Return another path to the person's home."""
    link = folder / "home"
    if not link.is_symlink():
        link.symlink_to(Path("~").expanduser().absolute(), target_is_directory=True)
    return link


class Templates:
    """The templates of one sweep, each of which ends with the last export that it is wanted for.

    Attributes
    ----------
    there
        Those that run.
    numbers
        Numbers of jobs: no two in the folder have the same.
    """

    #: Seconds that each has to end.
    patience = PATIENCE

    def __init__(self) -> None:
        self.folder = Folder.make()
        self.there: dict[Variation, TemplateProcess] = {}
        self.numbers = itertools.count()
        self._selector = selectors.DefaultSelector()

    def start(self, variation: Variation, settings: Settings, targets: Sequence[str], recorded: bool) -> None:
        """Start one; raise OSError where its interpreter cannot be run.

        Parameters
        ----------
        targets
            Exports that it makes before it serves.
        recorded
            Whether it records what exports depend on.
        """
        interpreter, machine, folder = absolute(settings.interpreter), settings.machine, self.folder.path
        log = folder / f"template-{variation.name}.log"
        paths = [path.absolute() for path in machine.paths or config.load().import_paths()]
        varied = surrounding_variables(variation.changed_surroundings, other_home(folder))
        answers, own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wanted = TemplateRequest(
            settings=settings,
            variation=variation,
            answers=own.fileno(),
            beat=ANSWER_LIMIT / BEATS,
            paths=tuple(map(str, paths)),
            targets=tuple(targets),
            records=str(folder) if recorded else None,
        )
        try:
            # A file: some are longer than an argument may be, and than what a pipe holds that nobody reads yet.
            with log.open("wb") as output, tempfile.TemporaryFile() as request:
                request.write(encoded(wanted))
                request.flush()
                process = subprocess.Popen(
                    [*with_harness(interpreter, MAIN, machine.root), str(request.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(own.fileno(), request.fileno()),
                    env=worker_environment(interpreter, variation.hash_seed, machine, varied),
                    start_new_session=True,
                )
        except OSError:
            answers.close()
            raise
        finally:
            own.close()
        made = TemplateProcess(variation, process, answers, log, Idleness(process.pid))
        self.there[variation] = made
        self._selector.register(answers, selectors.EVENT_READ, made)

    def heard(self, seconds: float) -> list[TemplateProcess]:
        """Return those that say something, after so many seconds at most."""
        return [key.data for key, _ in self._selector.select(seconds)]

    def end(self, template: TemplateProcess, patience: float) -> int:
        """End one; return its exit status."""
        self._selector.unregister(template.answers)
        del self.there[template.variation]
        return template.end(patience)

    def end_all(self) -> None:
        """End them all."""
        for template in list(self.there.values()):
            self.end(template, self.patience)

    def end_idle(self, schedule: Schedule) -> None:
        """Let those end that no export is wanted of any more: each keeps a gigabyte."""
        for variation, template in self.there.items():
            if template.ready and not template.running and schedule.first(variation) is None:
                template.finish()

    def let_go(self) -> None:
        """Let go of them after their sweep, which has ended them."""
        self._selector.close()
        self.folder.delete()
