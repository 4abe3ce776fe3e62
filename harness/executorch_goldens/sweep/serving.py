"""A template while it serves: it takes requests, starts a process for each, and answers when that has ended."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import selectors
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from executorch_goldens.exporting.limits import Idleness
from executorch_goldens.exporting.system_calls import Supervisor
from executorch_goldens.sweep.messages import Alive, Answer, Ended, ExportRequest, Started, decoded, encoded

#: Seconds between a template's looks for ended children, where the system does not notify it (Linux before 5.3).
POLL_SECONDS = 0.02

#: Number of cores, and so of seconds of processor time in one second: read before anything is varied.
CORES = os.cpu_count() or 1
#: The shortest time between two looks at what an export has taken, in seconds, and how many fit in its limit at least.
LOOK, LOOKS = 0.1, 10
#: Asks an export that is at its limit where it is: nothing else sends it (`sweep.worker.say_where`).
WHERE = signal.SIGXCPU
#: Seconds that it has to say so before it is killed.
LAST_WORDS = 1.0

#: What a group of targets says when it is ready, and how many bytes it says at most.
READY, LARGEST_WORD = b"ready", 16

#: ``PR_SET_CHILD_SUBREAPER`` (Linux, linux/prctl.h): whose parent has ended becomes a child of this process.
SUBREAPER = 36
#: ``PR_SET_PDEATHSIG``: the signal that this process gets when its parent ends.
DEATH = 1


@dataclass
class Child:
    """A running export.

    Attributes
    ----------
    ended
        File descriptor that can be read once it has (man 2 pidfd_open); None where there is none.
    due
        When it is to be looked at, or killed, in seconds of `time.monotonic`.
    """

    request: ExportRequest
    process: int
    started: float
    ended: int | None
    idleness: Idleness
    timed_out: bool = False
    due: float = 0.0


class Template:
    """Takes requests from `requests`, runs each in a child of its own, answers on `answers`.

    Parameters
    ----------
    answers
        A socket that keeps messages apart; the first answer of an export brings the file that its artifact goes into,
        which no other process has.
    start
        Starts a child for a request and returns its process id; the child is a process group leader. It writes its
        artifact to the descriptor that it is given as well.
    beat
        Seconds after which the template says that it is alive, while it has exports.

    Attributes
    ----------
    own
        Processes that were its children before the first export.
    """

    def __init__(
        self,
        requests: int,
        answers: socket.socket,
        start: Callable[[ExportRequest, int], int],
        beat: float,
    ) -> None:
        self.requests = requests
        self.answers = answers
        self.start = start
        self.beat = beat
        self.beaten = time.monotonic()
        self.children: dict[int, Child] = {}
        self.own: set[int] = set()
        self.selector = selectors.DefaultSelector()
        self.buffer = b""
        self.open = True

    def answer(self, message: Answer, *descriptors: int) -> None:
        # A sweep that has gone without a word is noticed where its requests end; its exports are ended then.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.answers, [encoded(message)], descriptors)

    def serve(self) -> None:
        """Serve until the requests end and every child has been answered for."""
        adopt_orphans()
        self.own = children_of_this_process()
        with self.selector:
            self.selector.register(self.requests, selectors.EVENT_READ)
            while self.open or self.children:
                if any(key.fd == self.requests for key, _ in self.selector.select(self.patience())):
                    self.receive()
                self.enforce_limits()
                self.reap()

    def patience(self) -> float | None:
        """Return the seconds after which there is something to do though nothing is heard; None if nothing will be."""
        if any(child.ended is None for child in self.children.values()):
            return POLL_SECONDS
        due = min((child.due for child in self.children.values()), default=math.inf)
        due = min(due, self.beaten + self.beat) if self.children else due
        return max(0.0, due - time.monotonic()) if due < math.inf else None

    def receive(self) -> None:
        chunk = os.read(self.requests, 1 << 16)
        if not chunk:
            # The sweep has gone, in good order or not: nobody waits for the children any more.
            self.open = False
            self.selector.unregister(self.requests)
            for child in self.children.values():
                self.kill(child)
            return
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in lines:
            request = decoded(line, ExportRequest)
            # Without a name, and closed here at once: those that are started later do not have it.
            with tempfile.TemporaryFile(dir=request.scratch) as result:
                process = self.start(request, result.fileno())
                self.answer(Started(request.id, process, os.getpid()), result.fileno())
            ended = descriptor_of(process)
            if ended is not None:
                self.selector.register(ended, selectors.EVENT_READ)
            self.children[process] = Child(request, process, time.monotonic(), ended, Idleness(process))

    def enforce_limits(self) -> None:
        """End exports that have taken more processor time than their limit, or have been idle for as long."""
        now = time.monotonic()
        if self.children and self.beaten + self.beat <= now:
            self.beaten = now
            self.answer(Alive(tuple(child.request.id for child in self.children.values())))
        for child in self.children.values():
            if child.due > now:
                continue
            if child.timed_out:
                child.due = math.inf
                self.kill(child)
                continue
            limit = child.request.settings.limit
            longest = max(LOOK, limit / LOOKS)
            child.idleness.look(2 * longest)
            if max(child.idleness.used, child.idleness.idle) > limit:
                child.timed_out = True
                child.due = now + LAST_WORDS
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.process, WHERE)
            else:
                child.due = now + min(max((limit - child.idleness.used) / CORES, LOOK), longest)

    def kill(self, child: Child) -> None:
        try:
            os.killpg(child.process, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(child.process, signal.SIGKILL)

    def reap(self) -> None:
        for process in list(self.children):
            done, status, usage = os.wait4(process, os.WNOHANG)
            if not done:
                continue
            child = self.children.pop(process)
            if child.ended is not None:
                self.selector.unregister(child.ended)
                os.close(child.ended)
            self.kill_left_behind(process)
            self.answer(
                Ended(
                    id=child.request.id,
                    status=os.waitstatus_to_exitcode(status),
                    timed_out=child.timed_out,
                    seconds=time.monotonic() - child.started,
                    # The system's figure lacks a process that was killed before its parent waited for it.
                    core_seconds=max(usage.ru_utime + usage.ru_stime, child.idleness.used),
                    idle=child.idleness.idle,
                    # In KiB (man 2 getrusage).
                    peak_mb=usage.ru_maxrss / 2**10,
                )
            )

    def kill_left_behind(self, group: int) -> None:
        """Kill processes that a finished export started and left running, in its process group or out of it."""
        # The number stays the group's while that has members, ended leader or not (Linux, kernel/pid.c).
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        while orphans := children_of_this_process() - self.children.keys() - self.own:
            for process in orphans:
                try:
                    os.kill(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                except PermissionError:
                    # It runs as somebody else: it is theirs.
                    self.own.add(process)


def descriptor_of(process: int) -> int | None:
    """Return a file descriptor that can be read once a child has ended; None where the system gives none."""
    try:
        return os.pidfd_open(process)
    except OSError:
        return None


def adopt_orphans() -> None:
    """Make processes that exports leave running in their own sessions children of this process."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def children_of_this_process() -> set[int]:
    """Return the processes whose parent this is (man 5 proc, children); none where the system does not list them."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        # A thread that has ended meanwhile.
        with contextlib.suppress(OSError):
            found.update(map(int, listing.read_text(encoding="ascii").split()))
    return found


class Groups:
    """Templates that are forked from this process, one for each group of targets, and take its requests.

    Modules that one group's exports import are invisible to other groups.

    Parameters
    ----------
    requests
        As of `Template`: it passes requests on; the groups answer themselves.
    group_of
        The group of a request.
    records
        Folder for the records of what exports depend on; None where nothing is recorded.
    """

    def __init__(self, requests: int, group_of: Callable[[ExportRequest], str], records: str | None) -> None:
        self.requests = requests
        self.group_of = group_of
        self.records = records
        self.pipes: dict[str, int] = {}
        self.processes: dict[int, int | None] = {}
        self.selector = selectors.DefaultSelector()

    def start(self, group: str, serve: Callable[[int, socket.socket], NoReturn]) -> None:
        """Fork the template of a group and wait until it is ready; ends this process where it ends.

        Parameters
        ----------
        serve
            Takes where its requests arrive, and where it says that it is ready, or what its files are seen by.
        """
        receiving, sending = os.pipe()
        hearing, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            self.selector.close()
            for descriptor in (self.requests, sending, *self.pipes.values()):
                os.close(descriptor)
            hearing.close()
            die_with(parent)
            serve(receiving, telling)
        os.close(receiving)
        telling.close()
        self.pipes[group] = sending
        self.processes[process] = descriptor_of(process)
        with hearing:
            self.selector.register(hearing, selectors.EVENT_READ)
            while (said := self._heard(hearing, process)) != READY:
                if said == b"":
                    self.end_as(process)
            self.selector.unregister(hearing)

    def _heard(self, hearing: socket.socket, process: int) -> bytes | None:
        """Return what a group that starts says, empty where it has ended; None where it says nothing yet."""
        if hearing not in self._ready(None):
            return None
        said, listeners, _, _ = socket.recv_fds(hearing, LARGEST_WORD, 1)
        for listener in listeners:
            assert self.records is not None
            supervisor = Supervisor(listener, self.records, process)
            self.selector.register(listener, selectors.EVENT_READ, supervisor)
        return said

    def _ready(self, patience: float | None) -> list[object]:
        """Wait for something to read; let watched processes go on, and return what else can be read."""
        found = [key for key, _ in self.selector.select(patience)]
        for supervisor in (key.data for key in found if key.data is not None):
            supervisor.serve()
        return [key.fileobj for key in found if key.data is None]

    def serve(self) -> None:
        """Pass requests on until they end, then wait for the groups; a group that ends before ends all of them."""
        for descriptor in (self.requests, *filter(None, self.processes.values())):
            self.selector.register(descriptor, selectors.EVENT_READ)
        watched = all(descriptor is not None for descriptor in self.processes.values())
        buffer = b""
        while True:
            found = self._ready(None if watched else POLL_SECONDS)
            if watched and not found:
                continue
            for process in self.processes:
                if _has_ended(process):
                    self.end_as(process)
            if self.requests not in found:
                continue
            chunk = os.read(self.requests, 1 << 16)
            if not chunk:
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                group = self.group_of(decoded(line, ExportRequest))
                pipe = self.pipes.get(group, next(iter(self.pipes.values())))
                # That its reader has ended is noticed above.
                with contextlib.suppress(BrokenPipeError):
                    os.write(pipe, line + b"\n")
        self.selector.unregister(self.requests)
        for pipe in self.pipes.values():
            os.close(pipe)
        # They end their exports, which may still ask for files.
        while not all(map(_has_ended, self.processes)):
            self._ready(POLL_SECONDS)
        # So that their processor time counts as this process's.
        for process in self.processes:
            os.waitpid(process, 0)

    def end_as(self, ended: int) -> NoReturn:
        """End every group, and this process as `ended` has."""
        code = os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1])
        for process in self.processes.keys() - {ended}:
            os.kill(process, signal.SIGKILL)
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code or 1)


def _has_ended(process: int) -> bool:
    """Return whether a child has ended, which is still to be waited for."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def die_with(parent: int) -> None:
    """Let this process be killed when its parent ends (man 2 prctl, PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(DEATH, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
