"""``--cluster``: a real Dask scheduler and real workers, each in a process of its own, on the loopback address."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.artifact import Cell, Killed
from executorch_goldens.causes.groups import grouped, read_members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.cli import main
from executorch_goldens.results import proposals
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.schedule import Job
from executorch_goldens.sweep.store import Store
from executorch_goldens.zoo.variations import variations
from executorch_goldens_plugins.cluster import PYTHON
from executorch_goldens_plugins.cluster.client import LOSSES, Relay
from executorch_goldens_plugins.cluster.lines import Lines
from executorch_goldens_plugins.cluster.sweep import LARGEST, TURNS, ClusterSweep, batches
from tests import REPOSITORY
from tests.support.clusters import compared, scheduler, until, worker
from tests.support.commands import GOLDENS, ended
from tests.support.making import GRAPH, RENUMBERED, artifact, lowered
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
    return runner(*CELLS, "--cluster", address, "--cache", str(runner.folder / "store"))


@pytest.mark.slow
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
    done = ended([*GOLDENS, "worker", "tcp://127.0.0.1:1", *words])
    assert done.returncode == 2
    assert all(fact in done.stderr for fact in facts), done.stderr
    assert "Traceback" not in done.stderr


def jobs_of(cells: int) -> list[Job]:
    """Return a job of each cell under each variation, in the order of a sweep."""
    return [
        Job(0, Cell("tosa-fp", f"case-{number}"), variation)
        for number in range(cells)
        for variation in variations()
    ]


@pytest.mark.parametrize(("workers", "slots"), [(1, 1), (2, 2), (3, 5), (2, 16), (100, 100)])
def test_a_batch_has_one_variation_and_the_batches_of_a_cell_follow_each_other(
    workers: int, slots: int
) -> None:
    jobs = jobs_of(100)
    found = batches(jobs, workers, slots)
    assert [batch.number for batch in found] == list(range(len(found)))
    assert sorted((job for batch in found for job in batch.jobs), key=jobs.index) == jobs
    assert all(len({job.variation for job in batch.jobs}) == 1 for batch in found)
    groups = [found[first : first + len(variations())] for first in range(0, len(found), len(variations()))]
    of_groups = [{tuple(job.cell for job in batch.jobs) for batch in group} for group in groups]
    assert all(len(cells) == 1 for cells in of_groups)
    assert [cell for (cells,) in of_groups for cell in cells] == list(dict.fromkeys(job.cell for job in jobs))


@pytest.mark.parametrize(("workers", "slots"), [(2, 2), (3, 5), (2, 16), (8, 8)])
def test_batches_shrink_towards_the_end_to_one_export_for_each_job(workers: int, slots: int) -> None:
    sizes = [len(batch.jobs) for batch in batches(jobs_of(500), workers, slots)]
    each = math.ceil(slots / workers)
    assert sizes[0] == LARGEST * each
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= each <= min(sizes[: -len(variations())])
    for number in range(0, len(sizes), len(variations())):
        of_each = sum(sizes[number:]) / workers
        assert sizes[number] <= max(each, math.ceil(of_each / TURNS))


class Scheduler:
    """A client of a scheduler without Dask: its workers answer when a test says so.

    Attributes
    ----------
    workers
        Exports that each worker makes at once.
    tasks
        Worker, number and future of each task, in the order in which they were submitted.
    """

    status = "running"

    def __init__(self, workers: Mapping[str, int]) -> None:
        self.workers = dict(workers)
        self.tasks: list[tuple[str, int, asyncio.Future[dict[str, object]]]] = []
        self.scheduler = self

    async def identity(self, n_workers: int) -> dict[str, object]:
        of_others = {"other": {"resources": {"executorch-1.5.1": 1.0}}}
        resources = {worker: {"executorch-1.4.1": float(jobs)} for worker, jobs in self.workers.items()}
        return {"workers": of_others | {worker: {"resources": each} for worker, each in resources.items()}}

    def submit(
        self,
        function: object,
        settings: object,
        batch: Mapping[str, int],
        *,
        workers: list[str],
        **options: object,
    ) -> asyncio.Future[dict[str, object]]:
        (worker,) = workers
        future: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self.tasks.append((worker, batch["batch"], future))
        return future

    def at(self, worker: str) -> list[int]:
        """Return the numbers of the batches that a worker has."""
        return [number for each, number, future in self.tasks if each == worker and not future.done()]

    async def answer(self, worker: str, number: int, **answer: object) -> None:
        (future,) = (
            future for each, of, future in self.tasks if (each, of) == (worker, number) and not future.done()
        )
        future.set_result({"worker": worker, **answer})
        await settled()


async def settled() -> None:
    """Let every task go on as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Collected(Lines):
    """Answers that a test reads."""

    def __init__(self) -> None:
        self.messages: list[Mapping[str, Any]] = []

    def add(self, message: Mapping[str, Any]) -> None:
        self.messages.append(message)


def batch_of(number: int, more: bool = False, attempt: int = 0) -> dict[str, Any]:
    exports = [{"variation": [number % 2, 0]}] * LARGEST
    return {"batch": number, "attempt": attempt, "more": more, "exports": exports}


async def relay_of(scheduler: Scheduler, count: int, folder: Path) -> tuple[Relay, Collected]:
    """Return a relay that the run has given so many batches, of two variations in turns."""
    answers = Collected()
    relay = Relay(scheduler, Store(folder), {"release": "1.4.1"}, "tcp://127.0.0.1:1", answers)
    await relay.update()
    for number in range(count):
        await relay.take(batch_of(number, more=number < count - 1))
    await settled()
    return relay, answers


def test_two_workers_get_two_batches_each_of_a_variation_each_and_then_the_next(tmp_path: Path) -> None:
    async def check() -> None:
        scheduler = Scheduler({"one": 1, "two": 1})
        _, answers = await relay_of(scheduler, 8, tmp_path)
        assert (scheduler.at("one"), scheduler.at("two")) == ([0, 2], [1, 3])
        await scheduler.answer("two", 1, rows=[])
        assert (scheduler.at("one"), scheduler.at("two")) == ([0, 2], [3, 5])
        assert answers.messages == [{"batch": 1, "worker": "two", "rows": []}]

    asyncio.run(check())


def test_batches_are_dealt_when_the_run_has_sent_all(tmp_path: Path) -> None:
    async def check() -> None:
        scheduler = Scheduler({"one": 1, "two": 1, "three": 1})
        await relay_of(scheduler, 12, tmp_path)
        assert [scheduler.at(worker) for worker in scheduler.workers] == [[0, 4], [1, 3], [2, 6]]

    asyncio.run(check())


def test_batches_of_a_worker_that_is_gone_go_to_another_also_to_one_that_comes_later(tmp_path: Path) -> None:
    async def check() -> None:
        scheduler = Scheduler({"one": 1})
        relay, answers = await relay_of(scheduler, 3, tmp_path)
        assert scheduler.at("one") == [0, 1]
        scheduler.workers = {}
        await relay.update()
        await settled()
        assert not scheduler.at("one")
        scheduler.workers = {"later": 1}
        await relay.update()
        await settled()
        for number in range(3):
            await scheduler.answer("later", number, rows=[])
        assert [message["batch"] for message in answers.messages] == [0, 1, 2]

    asyncio.run(check())


def test_a_batch_that_ends_its_workers_is_an_error(tmp_path: Path) -> None:
    async def check() -> None:
        scheduler = Scheduler({})
        relay, answers = await relay_of(scheduler, 1, tmp_path)
        for turn in range(LOSSES + 1):
            assert not answers.messages
            scheduler.workers = {f"worker-{turn}": 1}
            await relay.update()
            await settled()
        scheduler.workers = {}
        await relay.update()
        assert "ended 4 workers" in answers.messages[0]["error"]

    asyncio.run(check())


def test_a_refused_worker_gets_nothing_more_and_what_it_had_goes_to_others(tmp_path: Path) -> None:
    async def check() -> None:
        scheduler = Scheduler({"one": 1, "two": 1})
        relay, answers = await relay_of(scheduler, 8, tmp_path)
        await scheduler.answer("one", 0, refused=["a file"])
        assert answers.messages == [{"batch": 0, "refused": ["a file"], "worker": "one", "left": 1}]
        # The run gives it again; and what it refuses itself it gives with the worker's name.
        await relay.take(batch_of(0, attempt=1))
        assert scheduler.at("one") == [2]
        await scheduler.answer("one", 2, rows=[])
        await relay.take({**batch_of(2, attempt=1), "refuse": ["one", "a file"]})
        for _ in range(8):
            number = scheduler.at("two")[0]
            await scheduler.answer("two", number, rows=[])
        assert not scheduler.at("one")
        of_two = [message["batch"] for message in answers.messages if message["worker"] == "two"]
        assert sorted(of_two) == list(range(8))

    asyncio.run(check())


def test_where_the_run_refuses_the_last_worker_none_is_left(tmp_path: Path) -> None:
    async def check() -> None:
        scheduler = Scheduler({"one": 1})
        relay, answers = await relay_of(scheduler, 1, tmp_path)
        await scheduler.answer("one", 0, rows=[])
        await relay.take({**batch_of(0, attempt=1), "refuse": ["one", "a file"]})
        assert answers.messages[-1] == {"batch": 0, "worker": "one", "refused": ["a file"], "left": 0}

    asyncio.run(check())


@pytest.mark.slow
def test_a_golden_has_the_same_bytes_fresh_cached_merged_and_from_a_worker(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        *("--models", "models", "--variations", "0,4"),
        "--cell=tosa-int/linear",
        "--cell=xnnpack-int8/linear",
    )
    monkeypatch.delenv("CI", raising=False)

    def goldens() -> dict[str, bytes]:
        found = {name: content for name, (content, _, _) in runner.files().items()}
        shutil.rmtree(runner.goldens)
        return found

    def recorded(*how: str, says: str = "") -> dict[str, bytes]:
        finished = runner(*words, "--snapshot-update", "-v", *how)
        assert finished.code == 0, finished.output
        assert says in finished.output
        return goldens()

    fresh = recorded()
    assert len([name for name in fresh if name.count("/") == 2]) == 2
    store = ("--cache", str(tmp_path / "cache"))
    assert recorded(*store, says="reused 0 of 4") == fresh
    assert recorded(*store, says="reused 4 of 4") == fresh
    parts = [str(tmp_path / f"part-{number}") for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        # Nothing is recorded, so the cell is new.
        assert runner(*words, f"--shard={number}/2", f"--sweeps={part}", *store).code == 1
    merged, root = tmp_path / "merged", f"--goldens={runner.goldens}"
    assert main(["merge", *parts, "--into", str(merged), root]) == 1
    groups = grouped(
        read_members(proposals.find(merged), runner.goldens, Standing(config.load(), runner.goldens))
    )
    accepting = [f"--accept={group.name}" for group in groups]
    assert main(["review", *accepting, f"--sweeps={merged}", root]) == 0
    assert goldens() == fresh
    with scheduler(tmp_path) as (address, _), worker(tmp_path, "one", address):
        assert recorded("--cluster", address, "--cache", str(tmp_path / "other")) == fresh


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_time_and_nothing_else(runner: Runner, tmp_path: Path) -> None:
    alone = runner(*CELLS)
    assert alone.verdicts(), alone.output
    with (
        scheduler(tmp_path) as (address, _),
        worker(tmp_path, "one", address),
        worker(tmp_path, "two", address) as two,
    ):
        entries = tmp_path / "store-two" / "exports"

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
    store = tmp_path / "store" / "exports"
    with scheduler(tmp_path) as (address, process), worker(tmp_path, "one", address):

        def kill() -> None:
            until(lambda: any(store.glob("*/*")))
            os.killpg(process.pid, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        over(runner, address).refused(address, "does not answer any more", "are in the store")
        killing.join()
    kept = len(list(store.glob("*/*")))
    again = runner(*CELLS, "--cache", str(tmp_path / "store"))
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
print(json.dumps({{"workers": 64, "jobs": 64}}), flush=True)
for line in sys.stdin:
    batch = json.loads(line)
    rows = [
        {{
            "cell": each["cell"], "variation": "seed0-heap0", "made": None,
            "casualty": {{"kind": "killed", "signal": "SIGSEGV", "tail": ["x" * 200]}},
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
        "executorch_goldens_plugins.cluster.sweep.request",
        lambda settings, wanted: (("name", f"{wanted[0]} " * 100),) * 20,
    )
    monkeypatch.setattr(Reuse, "take", lambda self, settings, wanted: [None for _ in wanted])

    def make(cells: Sequence[Cell], address: str = "tcp://127.0.0.1:1") -> ClusterSweep:
        settings = Settings(Path(sys.executable), ("tests.support.zoo",), (), 1, 60.0)
        reuse = Reuse(Store(tmp_path / "store"))
        return ClusterSweep(address, "1.4.1", cells, variations((0,)), settings, reuse)

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
            assert outcome.result == Killed("SIGSEGV", tail=("x" * 200,))


def test_a_client_goes_on_though_the_run_does_not_read_its_answers() -> None:
    code = (
        "import sys, time\n"
        "from executorch_goldens_plugins.cluster.lines import Lines\n"
        "answers = Lines(sys.stdout.buffer)\n"
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
        assert client.stdout is not None
        assert client.stderr.readline() == "all are given\n"
        answers = [json.loads(line) for line in client.stdout]
    assert [answer["batch"] for answer in answers] == list(range(1000))
    assert client.returncode == 0


def test_no_factor_is_sought_on_a_cluster_and_the_message_says_so(runner: Runner) -> None:
    two = (lowered(GRAPH), lowered(RENUMBERED, pte=b"other"))
    runner.answers({"alpha": tuple(map(artifact, two))})
    finished = runner(
        *("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4"),
        *("--cluster", "tcp://127.0.0.1:1", "--cache", str(runner.folder / "store")),
        *("-p", "tests.plugins.cluster.replay"),
    )
    assert (
        "\n  the factor it follows is sought on this machine only: run the cell without --cluster\n"
        in finished.output
    )
    assert finished.rows["tosa-fp/alpha"]["attribution"]["follows"] == "elsewhere"


def test_artifacts_come_back_through_the_cache(runner: Runner) -> None:
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cluster", "tcp://127.0.0.1:1", "--cache=off")
    finished.refused("--cluster", "leave --cache off out")
