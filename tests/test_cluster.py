"""``--cluster``: a real Dask scheduler and real workers, each in a process of its own, on the loopback address."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.artifact import Cell
from harness.cluster import PYTHON
from harness.cluster.sweep import LARGEST, batches
from harness.sweeping.schedule import Job
from harness.variations import variations
from tests.conftest import DROPPED, REPOSITORY, Finished, Runner

#: Seconds that a process may take to say that it is there.
PATIENCE = 120.0
#: Cells that take a second each, on both kinds of target.
CELLS = (
    "--models",
    "models",
    "--cell",
    "tosa-fp/linear*",
    "--cell",
    "xnnpack-fp32/conv*",
    "--hash-seeds",
    "0,4",
)


@contextlib.contextmanager
def process(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with `arguments` in the repository, with its output in ``<name>.log``; nothing of it survives."""
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    # As in the run that it exports for: what stands on this path is in the keys.
    paths = [str(folder), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, *arguments],
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
    """Wait until `what` is so."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


@contextlib.contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler; give its address and its process."""
    file = folder / "scheduler.json"
    command = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with process(folder, "scheduler", *command, "--scheduler-file", str(file)) as started:
        until(file.exists)
        yield json.loads(file.read_text())["address"], started


@contextlib.contextmanager
def worker(folder: Path, name: str, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker with a store of its own, which offers the release of the tests."""
    command = ["-m", "harness", "worker", address, "--interpreter", sys.executable, "--jobs", "1"]
    with process(folder, name, *command, "--store", str(folder / f"store-{name}")) as started:
        until(lambda: b"Registered to" in (folder / f"{name}.log").read_bytes())
        yield started


def over(runner: Runner, address: str) -> Finished:
    return runner(*CELLS, "--cluster", address, "--store", str(runner.folder / "store"))


def compared(finished: Finished) -> dict[str, dict[str, object]]:
    """Return what a run says of each cell, but for what it cost."""
    costs = ("seconds", "core_seconds", "peak_mb", "reused")
    return {
        cell: {name: value for name, value in row.items() if name not in costs}
        for cell, row in finished.rows.items()
    }


def test_a_scheduler_that_does_not_answer_is_one_clear_error(runner: Runner) -> None:
    over(runner, "tcp://127.0.0.1:1").refused(
        "--cluster tcp://127.0.0.1:1", "no Dask scheduler answers", "dask scheduler"
    )


def test_a_client_without_dask_is_one_clear_error_that_says_what_to_install(runner: Runner) -> None:
    runner.environment[PYTHON] = sys._base_executable  # type: ignore[attr-defined]
    over(runner, "tcp://127.0.0.1:1").refused("--cluster tcp://127.0.0.1:1", "executorch-goldens[cluster]")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ((), ("nothing is offered", "--interpreter", "--make")),
        (("--make", "0.9"), ("0.9", "1.4.1")),
        (("--interpreter", "no/such/python"), ("no/such/python",)),
        (("--make", "1.4.1", "--jobs", "0"), ("--jobs",)),
    ],
)
def test_a_worker_that_can_offer_nothing_is_one_clear_error(
    words: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "harness", "worker", "tcp://127.0.0.1:1", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 2
    assert all(fact in ended.stderr for fact in facts), ended.stderr
    assert "Traceback" not in ended.stderr


def test_batches_keep_the_exports_of_a_cell_together_and_each_worker_gets_several() -> None:
    cells = [Cell("tosa-fp", f"case-{number}") for number in range(100)]
    jobs = [Job(0, cell, variation) for cell in cells for variation in variations()]
    for workers in (1, 2, 100):
        found = batches(jobs, workers)
        assert [job for batch in found for job in batch.jobs] == jobs
        assert len(found) >= min(100, 6 * workers)
        assert all(len({job.cell for job in batch.jobs}) <= LARGEST for batch in found)
        assert sum(len({job.cell for job in batch.jobs}) for batch in found) == len(cells)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_time_and_nothing_else(runner: Runner, tmp_path: Path) -> None:
    alone = runner(*CELLS)
    assert alone.verdicts(), alone.output
    with (
        scheduler(tmp_path) as (address, _),
        worker(tmp_path, "one", address),
        worker(tmp_path, "two", address) as two,
    ):
        entries = tmp_path / "store-two" / "artifacts"

        def kill() -> None:
            # In the middle: it has made something, and has more to make.
            until(lambda: any(entries.glob("*/*")))
            os.killpg(two.pid, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        finished = over(runner, address)
        killing.join()
    assert two.poll() == -signal.SIGKILL
    assert compared(finished) == compared(alone), finished.output


@pytest.mark.slow
def test_a_scheduler_that_is_killed_is_one_clear_error_and_loses_nothing(
    runner: Runner, tmp_path: Path
) -> None:
    store = tmp_path / "store" / "artifacts"
    with scheduler(tmp_path) as (address, process), worker(tmp_path, "one", address):

        def kill() -> None:
            until(lambda: any(store.glob("*/*")))
            os.killpg(process.pid, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        over(runner, address).refused(address, "does not answer any more", "are in the store")
        killing.join()
    kept = len(list(store.glob("*/*")))
    again = runner(*CELLS, "--reuse", "--store", str(tmp_path / "store"))
    assert f"reused {kept} of " in again.output


@pytest.mark.slow
def test_a_worker_on_a_machine_unlike_this_one_is_refused(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scheduler(tmp_path) as (address, _), monkeypatch.context() as patch:
        patch.setenv("TORCH_LOGS", "+dynamo")
        with worker(tmp_path, "one", address):
            patch.delenv("TORCH_LOGS")
            over(runner, address).refused("no worker's exports would be this machine's", "TORCH_LOGS")
