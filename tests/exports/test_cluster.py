"""``--cluster``: a real Dask scheduler and real workers, each in a process of its own, on the loopback address."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from executorch_goldens.artifact import Casualty, Cell
from executorch_goldens.cluster import PYTHON
from executorch_goldens.cluster.sweep import LARGEST, ClusterSweep, batches
from executorch_goldens.settings.exports import Settings
from executorch_goldens.store.reuse import Recheck, Reuse
from executorch_goldens.store.store import Store
from executorch_goldens.variations import variations
from executorch_goldens.workers.schedule import Job
from lab.clusters import PATIENCE, compared, scheduler, until, worker
from tests import REPOSITORY
from tests.support.runner import Finished, Runner

#: Cells that take a second each, on both kinds of target.
CELLS = (
    "--models",
    "models",
    "--cell",
    "tosa-fp/linear*",
    "--cell",
    "xnnpack-fp32/conv*",
    "--variations",
    "0,4",
)


def over(runner: Runner, address: str) -> Finished:
    return runner(*CELLS, "--cluster", address, "--cache-dir", str(runner.folder / "store"))


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
        ((), ("nothing is offered", "--toolchain 1.4.1")),
        (("-t", "0.9"), ("'0.9'", "1.4.1", "executorch==0.9")),
        (("-t", "no/such/python"), ("no/such/python",)),
        (("-t", "1.4.1", "--jobs", "0"), ("--jobs",)),
    ],
)
def test_a_worker_that_can_offer_nothing_is_one_clear_error(
    words: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "executorch_goldens", "worker", "tcp://127.0.0.1:1", *words],
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
    again = runner(*CELLS, "--cache=on", "--cache-dir", str(tmp_path / "store"))
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


#: A client that answers each batch at once, as soon as it has read it, with exports that died: no Dask, no worker.
INSTANT = """#!{python}
import json, signal, sys
signal.alarm(40)
settings = json.loads(sys.stdin.readline())
print(json.dumps({{"workers": 64}}), flush=True)
for line in sys.stdin:
    batch = json.loads(line)
    rows = [
        {{
            "cell": each["cell"], "variation": "seed0-heap0", "made": None, "casualty": ["crashed", "x" * 200],
            "seconds": 1.0, "peak_mb": 1.0, "core_seconds": 1.0,
        }}
        for each in batch["exports"]
    ]
    print(json.dumps({{"batch": batch["batch"], "worker": "tcp://w", "rows": rows}}), flush=True)
"""


@pytest.fixture
def cluster_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ClusterSweep]:
    """Return a maker of a sweep over cells of no zoo, with invented requests."""
    monkeypatch.setattr(
        Reuse, "listing", lambda self, settings, wanted: (("name", f"{wanted[0]} " * 100),) * 20
    )
    monkeypatch.setattr(Reuse, "take", lambda self, settings, wanted: [None for _ in wanted])

    def make(cells: Sequence[Cell], address: str = "tcp://127.0.0.1:1") -> ClusterSweep:
        reuse = Reuse(Store(tmp_path / "store"), Recheck(), takes=True, keeps=True)
        settings = Settings(Path(sys.executable), ("tests.support.zoo",), (), 1, 60.0, reuse=reuse)
        return ClusterSweep(address, "1.4.1", cells, variations((0,)), settings)

    return make


def test_many_cells_and_a_client_that_answers_at_once_do_not_wait_for_each_other(
    cluster_sweep: Callable[..., ClusterSweep], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = tmp_path / "python"
    client.write_text(INSTANT.format(python=sys.executable))
    client.chmod(0o755)
    monkeypatch.setenv(PYTHON, str(client))
    cells = [Cell("tosa-fp", f"case-{number}") for number in range(1000)]
    with cluster_sweep(cells) as sweep:
        for cell in cells:
            assert sweep.ready(cell, 20.0), f"{cell}: the run and its client wait for each other"
            (outcome,) = sweep.outcomes(cell)
            assert isinstance(outcome.result, Casualty)


def test_a_client_goes_on_though_the_run_does_not_read_its_answers() -> None:
    code = (
        "import sys, time\n"
        "from executorch_goldens.cluster.client import Answers\n"
        "answers = Answers()\n"
        "for number in range(1000): answers.add({'batch': number, 'rows': 'x' * 1000})\n"
        "print('all are given', file=sys.stderr, flush=True)\n"
        "answers.finish()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        text=True,
    ) as client:
        assert client.stderr is not None
        assert client.stdout is not None
        assert client.stderr.readline() == "all are given\n"
        answers = [json.loads(line) for line in client.stdout]
    assert [answer["batch"] for answer in answers] == list(range(1000))
    assert client.returncode == 0
