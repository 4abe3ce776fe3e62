"""Sees which files exports look for, open and make, whatever does it: Python, C++, Rust, a program that they start.

Python's hooks see what Python does (`exporting.recording`). A process that is watched stops at each system call that
takes a path until its `Supervisor` has read the path and lets it go on (man 2 seccomp, man 2 seccomp_unotify), and so
do all processes that it starts. The supervisor must be an ancestor: others may not read its memory (Yama).

Tried and left: inotify knows no process, and only folders that are named before; wrapped readers are those that
somebody thought of; ``/proc/PID/fd`` has what is open at that moment; fanotify and eBPF need privileges.
"""

# ruff: noqa: PTH100, PTH110, PTH115, PTH116, PTH118, PTH123
# Thousands of paths: as text.
from __future__ import annotations

import array  # noqa: F401 - `socket.send_fds` would import it when this process has stopped for nobody
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import re
import socket
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from executorch_goldens.exporting.recording import (
    ALL,
    FILE,
    LOOK,
    SEEN,
    look,
    of_the_machine,
    state_when_read,
)
from executorch_goldens.files import durable


class Call(NamedTuple):
    """Where a system call has what is looked at, by the numbers of its arguments: a folder, a path, flags."""

    kind: str
    path: int
    folder: int | None = None
    flags: int | None = None


#: Kinds of calls: opens a file, asks about one, makes one where there is none, or in its place, lists an open folder,
#: runs a program, connects to an address.
OPEN, OPEN_HOW, ASK, MAKE, REPLACE = "open", "open_how", "ask", "make", "replace"
LIST, RUN, CONNECT = "list", "run", "connect"
CALLS = {
    "open": Call(OPEN, 0, flags=1),
    "creat": Call(REPLACE, 0),
    "openat": Call(OPEN, 1, 0, flags=2),
    "openat2": Call(OPEN_HOW, 1, 0, flags=2),
    **dict.fromkeys(("stat", "lstat", "access", "readlink"), Call(ASK, 0)),
    **dict.fromkeys(("newfstatat", "statx", "faccessat", "faccessat2", "readlinkat"), Call(ASK, 1, 0)),
    "mkdir": Call(MAKE, 0),
    "mkdirat": Call(MAKE, 1, 0),
    **dict.fromkeys(("link", "symlink"), Call(MAKE, 1)),
    "linkat": Call(MAKE, 3, 2),
    "symlinkat": Call(MAKE, 2, 1),
    "rename": Call(REPLACE, 1),
    **dict.fromkeys(("renameat", "renameat2"), Call(REPLACE, 3, 2)),
    **dict.fromkeys(("getdents", "getdents64"), Call(LIST, 0)),
    "execve": Call(RUN, 0),
    "execveat": Call(RUN, 1, 0),
    "connect": Call(CONNECT, 1),
}
#: Their numbers by architecture, and the architecture's own (Linux, arch/x86/entry/syscalls/syscall_64.tbl,
#: scripts/syscall.tbl, uapi/linux/audit.h).
NUMBERS = {
    "x86_64": (
        0xC000003E,
        {
            **{"open": 2, "stat": 4, "lstat": 6, "access": 21, "connect": 42, "execve": 59, "getdents": 78},
            **{"rename": 82, "mkdir": 83, "creat": 85, "link": 86, "symlink": 88, "readlink": 89},
            **{"getdents64": 217, "openat": 257},
            **{"mkdirat": 258, "newfstatat": 262, "renameat": 264, "linkat": 265, "symlinkat": 266},
            **{"readlinkat": 267, "faccessat": 269, "renameat2": 316, "execveat": 322, "statx": 332},
            **{"openat2": 437, "faccessat2": 439},
        },
        304,
    ),
    "aarch64": (
        0xC00000B7,
        {
            **{"mkdirat": 34, "symlinkat": 36, "linkat": 37, "renameat": 38, "faccessat": 48, "openat": 56},
            **{"getdents64": 61},
            **{"readlinkat": 78, "newfstatat": 79, "connect": 203, "execve": 221, "renameat2": 276},
            **{"execveat": 281, "statx": 291, "openat2": 437, "faccessat2": 439},
        },
        265,
    ),
}
#: Opens files by a queue that no filter sees: programs take it that there is none.
IO_URING_SETUP = 425
#: From here on numbers are those of another way to call the same kernel (x32).
OTHERS = 0x40000000

#: Of uapi/linux/seccomp.h, prctl.h and filter.h.
NO_NEW_PRIVILEGES, SET_FILTER, NEW_LISTENER, SPEC_ALLOW = 38, 1, 1 << 3, 1 << 2
ALLOW, NOTIFY, ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
SECCOMP = {"x86_64": 317, "aarch64": 277}
RECEIVE, SEND = 0xC0502100, 0xC0182101
#: A notification (its number, the thread, the call's number, architecture and arguments), and an answer to go on.
NOTIFICATION, ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
GO_ON = 1

#: Longest path (uapi/linux/limits.h, PATH_MAX), and the folder "here" as an argument (AT_FDCWD).
LONGEST, HERE = 4096, -100
#: Families of addresses beyond this machine.
INTERNET = (socket.AF_INET, socket.AF_INET6)


def watch(telling: socket.socket) -> None:
    """Let this process stop at such calls from now on, and send what its supervisor listens to; raise OSError.

    It goes on as soon as there is one.
    """
    machine = platform.machine()
    if machine not in NUMBERS:
        raise OSError(errno.ENOSYS, f"not known on {machine}")
    program = _filter(*NUMBERS[machine])
    instructions = ctypes.create_string_buffer(b"".join(program))
    given = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(instructions)))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    listener = library.syscall(SECCOMP[machine], SET_FILTER, NEW_LISTENER | SPEC_ALLOW, given)
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    socket.send_fds(telling, [b"listen"], [listener])
    os.close(listener)


def _filter(architecture: int, numbers: dict[str, int], by_handle: int) -> list[bytes]:
    """Return the filter: instructions of the classic Berkeley packet filter over ``struct seccomp_data``."""
    notified = sorted(numbers.values())
    refused = {IO_URING_SETUP: errno.ENOSYS, by_handle: errno.EPERM}

    def instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("HBBI", code, then, otherwise, value)

    ends = [ALLOW, NOTIFY, *(ERRNO | code for code in refused.values()), ERRNO | errno.ENOSYS]
    tests = [(JUMP_EQUAL, number, 1) for number in notified]
    tests += [(JUMP_EQUAL, number, 2 + index) for index, number in enumerate(refused)]
    tests += [(JUMP_AT_LEAST, OTHERS, len(ends) - 1)]
    last = 3 + len(tests)
    lines = [
        instruction(LOAD, 4),
        instruction(JUMP_EQUAL, architecture, 0, last + 1 - 2),
        instruction(LOAD, 0),
    ]
    lines += [
        instruction(code, value, last + end - (3 + index) - 1)
        for index, (code, value, end) in enumerate(tests)
    ]
    return lines + [instruction(RETURN, end) for end in ends]


@dataclass
class Sight:
    """What one export, or a template until it serves, was seen to do.

    Attributes
    ----------
    made
        Paths that it has made: no input.
    missed
        What could not be seen.
    begun
        Whether it is known to be an export; else it is one that is about to begin, or a process that one left running.
    """

    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    missed: str = ""
    begun: bool = False

    def note(self, kind: str, place: str) -> None:
        if (kind, place) not in self.facts and not self._is_made(place):
            self.facts[kind, place] = state_when_read(place) if kind == FILE else look(place, {})

    def _is_made(self, place: str) -> bool:
        """Return whether it has made a path, or a folder above it."""
        while place.strip("/"):
            if place in self.made:
                return True
            place = place.rpartition("/")[0]
        return False


class Supervisor:
    """Sees what processes do that are `watch`ed; their ancestor.

    A process says in a call itself that its export begins: it makes the file of its record; and that it ends: it asks
    for what was seen, a file beside that one, which is there when the call goes on.

    Parameters
    ----------
    records
        Folder in which records are made: nothing in it is an input.
    root
        The process that is watched first; each of its children is an export, with all that this one starts.
    """

    def __init__(self, listener: int, records: str, root: int) -> None:
        self.listener = listener
        self.records = f"{records}/"
        self.root = root
        self.architecture, numbers, _ = NUMBERS[platform.machine()]
        self.calls = {number: CALLS[name] for name, number in numbers.items()}
        #: By the process that an export began in; the root's until it serves, with all that it starts.
        self.exports: dict[int, Sight] = {}
        self.owners: dict[int, int] = {}
        self.serving = False

    def serve(self) -> None:
        """Let a process that has stopped go on."""
        message = bytearray(NOTIFICATION.size)
        try:
            fcntl.ioctl(self.listener, RECEIVE, message, True)
        except OSError:
            # It was killed, or a signal came first: then it calls again.
            return
        number, thread, _, call, architecture, _, *given = NOTIFICATION.unpack(message)
        try:
            self._see(thread, self.calls.get(call) if architecture == self.architecture else None, given)
        finally:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.listener, SEND, ANSWER.pack(number, 0, 0, GO_ON))

    def _see(self, thread: int, call: Call | None, given: Sequence[int]) -> None:
        if (owner := self.owners.get(thread)) is None:
            owner = self.owners[thread] = self._owner(thread)
        sight = self.exports.setdefault(owner, Sight())
        if call is None:
            sight.missed = "it runs a program of another architecture"
            return
        try:
            place, flags = _asked(thread, call, given)
        except (OSError, ValueError, struct.error) as error:
            # A process that was killed meanwhile asks for nothing.
            if os.path.exists(f"/proc/{thread}"):
                sight.missed = f"a path that it uses cannot be read ({error})"
            return
        if call.kind == CONNECT:
            sight.missed = "it connects to the network" if place else sight.missed
        elif place.startswith(self.records) and place.endswith(SEEN):
            self._end(owner, place)
        elif place.startswith(self.records):
            sight.begun |= place.endswith(RECORD) and bool(flags & os.O_TRUNC)
        elif place and not of_the_machine(place):
            _note(sight, call, place, flags)

    def _owner(self, thread: int) -> int:
        """Return the process that an event belongs to: the child of the root that has started it, or the root."""
        process, parent = _process(thread)
        while self.serving and parent not in (self.root, 0, 1) and process != self.root:
            process, parent = _process(parent)
        return process if self.serving else self.root

    def _end(self, owner: int, place: str) -> None:
        """Leave what an export was seen to do, and what processes did of which nobody knows whose they are."""
        strays = [each for process, each in self.exports.items() if process != owner and not each.begun]
        sights = [self.exports.pop(owner), *strays]
        self.serving = True
        facts = {key: value for sight in reversed(sights) for key, value in sight.facts.items()}
        missed = next((sight.missed for sight in sights if sight.missed), "")
        lines = [missed, *([*key, value] for key, value in facts.items())]
        durable.replace(Path(place), (f"{json.dumps(line)}\n" for line in lines), synced=False)
        self.owners = {thread: process for thread, process in self.owners.items() if process != owner}
        # The root serves, and nobody asks what it does by itself.
        self.exports.pop(self.root, None)


#: Ends the name of the record of an export.
RECORD = "/record"


def _asked(thread: int, call: Call, given: Sequence[int]) -> tuple[str, int]:
    """Return the path that a call is about, empty for none, and its flags; of an address, whether it is far away."""
    if call.kind == LIST:
        return os.readlink(f"/proc/{thread}/fd/{given[call.path]}") + ALL, 0
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        if call.kind == CONNECT:
            (family,) = struct.unpack("H", os.pread(memory.fileno(), 2, given[call.path]))
            return "far" if family in INTERNET else "", 0
        # Up to the end of memory that is there.
        path = os.pread(memory.fileno(), LONGEST, given[call.path]).partition(b"\0")[0]
        flags = given[call.flags] if call.flags is not None else 0
        if call.kind == OPEN_HOW:
            (flags,) = struct.unpack("Q", os.pread(memory.fileno(), 8, flags))
    folder = given[call.folder] if call.folder is not None else HERE
    return _place(thread, os.fsdecode(path), folder) if path else "", flags


def _note(sight: Sight, call: Call, place: str, flags: int) -> None:
    """Note what a call does to a file."""
    if call.kind in (LIST, ASK):
        sight.note(LOOK, place)
        return
    try:
        mode = os.stat(place).st_mode
    except OSError:
        mode = 0
    opens = call.kind in (OPEN, OPEN_HOW)
    makes = call.kind == MAKE or (opens and flags & os.O_CREAT)
    if (makes and not mode) or call.kind == REPLACE or (opens and flags & os.O_TRUNC):
        if (FILE, place) not in sight.facts:
            sight.made.add(place)
    elif call.kind == MAKE or flags & os.O_PATH or not stat.S_ISREG(mode):
        sight.note(LOOK, place)
    elif flags & os.O_ACCMODE != os.O_WRONLY:
        sight.note(FILE, place)
        if call.kind == RUN:
            _note_interpreter(sight, place)


def _note_interpreter(sight: Sight, program: str) -> None:
    """Note what the kernel runs a script with."""
    with contextlib.suppress(OSError), open(program, "rb") as file:
        if (words := file.readline(LONGEST).split()) and words[0].startswith(b"#!"):
            sight.note(FILE, os.fsdecode(words[0][2:] or words[1]))


def _place(thread: int, path: str, folder: int) -> str:
    """Return the absolute path of one that a thread uses, ``..`` taken out."""
    here = (
        f"/proc/{thread}/cwd" if folder & 0xFFFFFFFF == HERE & 0xFFFFFFFF else f"/proc/{thread}/fd/{folder}"
    )
    if not path.startswith("/"):
        path = os.path.join(os.readlink(here), path)
    for own in ("/proc/self/", "/proc/thread-self/"):
        if path.startswith(own):
            path = f"/proc/{thread}/{path[len(own) :]}"
    # Of what a process has open, or where it is, the files are what counts; ``..`` leads up from where a link leads.
    if path.startswith("/proc/"):
        return os.path.realpath(path)
    folder_of, _, name = path.rpartition("/")
    return os.path.join(os.path.realpath(folder_of), name) if "/.." in path else os.path.abspath(path)


def _process(thread: int) -> tuple[int, int]:
    """Return the process of a thread, and its parent; zeros where it is no more."""
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as status,
    ):
        found = dict(re.findall(r"^(Tgid|PPid):\s+(\d+)$", status.read(), re.MULTILINE))
        return int(found["Tgid"]), int(found["PPid"])
    return 0, 0
