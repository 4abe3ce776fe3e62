"""``--cluster``: a real Dask scheduler and real workers, each in a process of its own, on the loopback address."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.artifact import Cell
from harness.cluster import PYTHON
from harness.cluster.sweep import LARGEST, batches
from harness.sweeping.schedule import Job
from harness.variations import variations
from tests.cluster import PATIENCE, compared, scheduler, until, worker
from tests.conftest import REPOSITORY, Finished, Runner

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


def over(runner: Runner, address: str) -> Finished:
    return runner(*CELLS, "--cluster", address, "--store", str(runner.folder / "store"))


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
    assert compared(finished.rows) == compared(alone.rows), finished.output


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
