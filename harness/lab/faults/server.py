"""Runs commands of the harness in forks of a process that has imported everything: a tenth of a second, not three.

``python -m lab.faults.server`` reads a command a line, as JSON with ``words``, ``variables``, ``log``, ``folder`` and
``held``, and answers with the process that carries it out; later, on an empty line, with its exit status. A process
that is held stops before it begins (SIGSTOP), so that strace can attach to it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from executorch_goldens.cli import MODULES, main
from lab import REPOSITORY
from lab.faults.place import status, until

#: Modules that commands import on demand.
LATER = (
    "pytest",
    "syrupy",
    "executorch_goldens.running.plugin",
    "executorch_goldens.running.cells",
    "lab.faults.zoo",
    "executorch_goldens.review.recording",
)


def carry_out(request: Mapping[str, object], variables: Mapping[str, str]) -> int:
    """Start a command in a fork; return its process."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.setsid()
        log = os.open(str(request["log"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for own, descriptor in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(own, descriptor)
        os.chdir(str(request["folder"]))
        os.environ.clear()
        os.environ.update(variables)
        if request["held"]:
            os.kill(os.getpid(), signal.SIGSTOP)
        words = request["words"]
        assert isinstance(words, list)
        sys.argv = ["goldens", *words]
        status = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def serve() -> None:
    for name in (*LATER, *(MODULES[command] for command in ("run", "review"))):
        importlib.import_module(name)
    print("ready", flush=True)
    process = 0
    for line in sys.stdin:
        if line.strip():
            request = json.loads(line)
            process = carry_out(request, request["variables"])
            print(process, flush=True)
        else:
            _, status = os.waitpid(process, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)


class Server:
    """Such a process, and the command that it carries out."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lab.faults.server"],
            cwd=REPOSITORY,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._strace: subprocess.Popen[bytes] | None = None
        assert self._answer() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate()

    def start(
        self, words: list[str], variables: Mapping[str, str], log: Path, strace: Sequence[str] = ()
    ) -> int:
        """Begin a command in the folder of its `log`; return its process.

        Parameters
        ----------
        strace
            Options of strace, which the command is carried out under if there are any.
        """
        request = {"words": words, "variables": dict(variables), "log": str(log), "folder": str(log.parent)}
        self._ask(json.dumps(request | {"held": bool(strace)}))
        process = int(self._answer())
        if strace:
            self._attach(strace, process)
        return process

    def _attach(self, strace: Sequence[str], process: int) -> None:
        """Let strace follow a process that is held, and let it go on."""
        until(lambda: status(process, "State").startswith("T"), "a command did not wait for strace")
        self._strace = subprocess.Popen(["strace", "-qq", *strace, "-p", str(process)])
        until(lambda: status(process, "TracerPid") != "0", "strace did not attach")
        os.kill(process, signal.SIGCONT)

    def wait(self) -> int:
        """Return the exit status of the command, the negative of a signal's number where it died of one."""
        self._ask("")
        code = int(self._answer())
        if self._strace is not None:
            # Its output is complete when it has ended.
            self._strace.wait()
            self._strace = None
        return code

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


if __name__ == "__main__":
    serve()
