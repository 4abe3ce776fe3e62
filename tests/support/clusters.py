"""A Dask cluster on the loopback address: a scheduler and workers, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lab.variables import DROPPED
from tests import REPOSITORY

#: Seconds that a process may take to say that it is there.
PATIENCE = 120.0

#: Fields of a run's results that say what a cell cost: they differ from one machine to the next.
COSTS = ("seconds", "core_seconds", "peak_mb", "reused")


def compared(rows: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    """Return a run's result of each cell, without its cost."""
    return {
        cell: {name: value for name, value in row.items() if name not in COSTS} for cell, row in rows.items()
    }


def import_path(folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Return the PYTHONPATH of a run in `folder` and of the workers that export for it: exports depend on it."""
    paths = [str(folder), str(REPOSITORY), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(path for path in paths if path)


@contextlib.contextmanager
def process(
    folder: Path, name: str, *arguments: str, python: str = sys.executable
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `python` with `arguments` in the repository, with its output in ``<name>.log``; nothing of it survives."""
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    environment["PYTHONPATH"] = import_path(folder, environment)
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen(
            [python, *arguments],
            cwd=REPOSITORY,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def until(what: Callable[[], bool]) -> None:
    """Wait until `what` returns true."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


@contextlib.contextmanager
def scheduler(folder: Path, python: str = sys.executable) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler; give its address and its process."""
    file = folder / "scheduler.json"
    # An earlier one's has an address where nobody answers.
    file.unlink(missing_ok=True)
    command = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with process(folder, "scheduler", *command, "--scheduler-file", str(file), python=python) as started:
        until(file.exists)
        yield json.loads(file.read_text())["address"], started


@contextlib.contextmanager
def worker(
    folder: Path, name: str, address: str, python: str = sys.executable
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker with one job and a store of its own, which offers the release that is installed here."""
    command = ["-m", "executorch_goldens", "worker", address, "--toolchain", sys.executable, "--jobs", "1"]
    with process(
        folder, name, *command, "--cache-dir", str(folder / f"store-{name}"), python=python
    ) as started:
        until(lambda: b"Registered to" in (folder / f"{name}.log").read_bytes())
        yield started
