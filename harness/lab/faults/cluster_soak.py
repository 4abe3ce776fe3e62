"""``python -m lab cluster-soak``: growth while runs on a Dask cluster repeat and workers are killed at random.

A scheduler and two workers are processes of their own on the loopback address. In
each turn every cell is exported again by the workers, and judged against the goldens of the first run; what is drawn is
killed meanwhile, and replaced. Once it is the scheduler.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from executorch_goldens.judging.updating import UPDATE
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens.sweep import folder
from executorch_goldens_plugins.cluster.worker import DEATH_TIMEOUT
from lab import REPOSITORY
from lab.clusters import compared
from lab.faults import soak
from lab.faults.fault import LEAVING
from lab.faults.place import SOUND, Ended, LostError, Place, demand, until
from lab.faults.soak import State
from lab.pages import Part

#: Some of the states of the last soak, evenly, and all of them.
TABLE = Path(__file__).with_name("cluster-soak.tsv")
CURVES = REPOSITORY / "build" / "cluster-soak.tsv"

WORKERS = 2
#: A worker with its nanny and its exporter; the worker alone, which the nanny replaces; the scheduler.
WHOLE, ALONE, SCHEDULER = "worker killed", "worker killed below its nanny", "scheduler killed"
#: Faults of a turn, and how often in five turns. The scheduler is killed once, after half of the time.
TURNS = ("none", WHOLE, WHOLE, ALONE, ALONE)
#: Turns that count as the beginning, and as the end: which connections a scheduler has open differs by the moment.
FEW = 3

VARIATIONS = ("--variations", "0,4")

#: Dask keeps the last thousand messages of each connection, for its developers. With ten of them, these are there from
#: the first turn on, and what grows is something else.
SHORT_LOGS = {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "10"}


@dataclass
class Member:
    """The scheduler or a worker: a process that leads a group, with its output in a file."""

    process: subprocess.Popen[str]
    log: Path

    def says(self, words: str) -> int:
        """Return how often it has said something."""
        return self.log.read_text(errors="replace").count(words)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Cluster:
    """A scheduler and workers in a place."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.started = 0
        self.workers: list[Member] = []
        self.address = ""
        self.scheduler = self._schedule()
        self.complete()

    def _start(self, name: str, *words: str) -> Member:
        log = self.place.folder / f"{name}.log"
        with log.open("w") as file:
            process = self.place.start([sys.executable, "-m", *words], stdout=file)
        return Member(process, log)

    def _schedule(self) -> Member:
        file = self.place.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        member = self._start("scheduler", "distributed.cli.dask_scheduler", *words)
        until(file.exists, "the scheduler does not begin")
        self.address = json.loads(file.read_text())["address"]
        return member

    def complete(self) -> None:
        """Start workers, and the scheduler, in the place of those that have ended, and wait until they are there."""
        if self.scheduler.process.poll() is not None:
            self.scheduler = self._schedule()
        self.workers = [worker for worker in self.workers if worker.process.poll() is None]
        while len(self.workers) < WORKERS:
            name, self.started = f"worker-{self.started}", self.started + 1
            store = ("--cache-dir", str(self.place.folder / f"store-{name}"))
            offered = ("--toolchain", str(default_interpreter()), "--jobs", "1", *store)
            self.workers.append(self._start(name, "executorch_goldens", "worker", self.address, *offered))
        for worker in self.workers:
            until(functools.partial(worker.says, "Registered to"), "a worker does not register")

    def forget(self) -> None:
        """Empty the stores: cached exports would not be made again."""
        for store in self.place.folder.glob("store*"):
            for entry in store.glob("exports/*/*"):
                entry.unlink(missing_ok=True)

    def below_nanny(self, worker: Member) -> int:
        """Return the process in which Dask runs tasks, which the nanny has started."""
        found = [
            process
            for process, words in self.place.processes().items()
            if parent(process) == worker.process.pid and "spawn_main" in words
        ]
        demand(len(found) == 1, f"the nanny has {found}")
        return found[0]

    def strays(self) -> dict[int, str]:
        """Return the processes that are below no member of the cluster."""
        members = {member.process.pid for member in (self.scheduler, *self.workers)}

        def belongs(process: int) -> bool:
            while process > 1 and process not in members:
                process = parent(process)
            return process in members

        return {process: words for process, words in self.place.processes().items() if not belongs(process)}


def open_files(process: int | str) -> int:
    """Return how many descriptors a process has (man 5 proc)."""
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def parent(process: int) -> int:
    """Return the parent of a process (man 5 proc); 0 where it has ended."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def abandoned(temporary: Path) -> list[str]:
    """Return abandoned temporary files: those not in folders of a living sweep, nor Dask's."""

    def is_held(path: Path) -> bool:
        lock = filelock.FileLock(path / folder.LOCK)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return True
        lock.release()
        return False

    return [
        path.name
        for path in sorted(temporary.iterdir())
        if not path.name.startswith(("dask-", "torchinductor_"))
        and not (path.name.startswith(folder.PREFIX) and is_held(path))
    ]


class ClusterSoak:
    """Turns of runs on one cluster.

    Attributes
    ----------
    first
        The first run's result of each cell, without its costs.
    seconds
        The duration of an undisturbed run.
    """

    def __init__(self, place: Place, cluster: Cluster, seed: int, minutes: float) -> None:
        self.place = place
        self.cluster = cluster
        self.drawn = random.Random(seed)
        self.began = time.monotonic()
        self.half = self.began + minutes * 30
        self.lost_scheduler = False
        self.turn = 0
        ended = place.finish(self._run(UPDATE))
        demand(ended.code == 0 and set(ended.rows) == set(SOUND), f"nothing to compare with:\n{ended.output}")
        began = time.monotonic()
        ended = self._whole(place.finish(self._run()), "the first run")
        self.seconds = time.monotonic() - began
        self.first = compared(ended.rows)
        self.left: set[str] = set()
        demand(set(ended.verdicts().values()) == {"stable"}, ended.output)
        self.descriptors = open_files("self")

    def _run(self, *words: str) -> subprocess.Popen[str]:
        self.cluster.forget()
        self.place.results.unlink(missing_ok=True)
        command = self.place.run_command(*self.place.reusing(), *VARIATIONS, *words)
        return self.place.start([*command, "--cluster", self.cluster.address])

    def _whole(self, ended: Ended, said: str) -> Ended:
        demand(ended.code == 0, f"{said}: it ends with {ended.code}:\n{ended.output}")
        return ended

    def one(self) -> State:
        """Take a turn; raise `LostError` unless the run is green like the first and leaves nothing."""
        self.turn += 1
        fault = self.drawn.choice(TURNS)
        if time.monotonic() > self.half and not self.lost_scheduler:
            fault = SCHEDULER
        said = f"{fault}, turn {self.turn}"
        run = self._run()
        if fault == SCHEDULER:
            self._lose_scheduler(run, said)
        else:
            self._disturb(fault, run)
            ended = self._whole(self.place.finish(run), said)
            demand(
                compared(ended.rows) == self.first,
                f"{said}: other results than the first time:\n{ended.output}",
            )
        self.cluster.complete()
        until(
            lambda: not self.cluster.strays(), f"{said}: processes are left: {self.cluster.strays()}", LEAVING
        )
        here = open_files("self")
        demand(
            here <= self.descriptors,
            f"{said}: this process has {here} open files, and had {self.descriptors}",
        )
        return self.state(fault)

    def _disturb(self, fault: str, run: subprocess.Popen[str]) -> None:
        """Kill the drawn process at a random moment of a run."""
        if fault == "none":
            return
        time.sleep(self.drawn.uniform(0.0, self.seconds))
        worker = self.drawn.choice(self.cluster.workers)
        if fault == WHOLE:
            worker.kill()
            self.cluster.complete()
            return
        before = worker.says("Registered to")
        os.kill(self.cluster.below_nanny(worker), signal.SIGKILL)
        until(lambda: worker.says("Registered to") > before, "the nanny starts no other worker")

    def _lose_scheduler(self, run: subprocess.Popen[str], said: str) -> None:
        """Kill the scheduler in the middle of a run, which is one error; workers without one end by themselves."""
        until(lambda: any(self.place.store.glob("exports/*/*")) or run.poll() is not None, "no export comes")
        self.cluster.scheduler.kill()
        ended = self.place.finish(run)
        if ended.code == 0:
            # It was done already. A later turn tries again.
            demand(
                compared(ended.rows) == self.first,
                f"{said}: other results than the first time:\n{ended.output}",
            )
        else:
            ended.is_one_error(self.cluster.address, "does not answer any more", "are in the store")
            self.lost_scheduler = True
        gone = lambda: all(worker.process.poll() is not None for worker in self.cluster.workers)  # noqa: E731
        until(gone, f"{said}: workers do not end without a scheduler", DEATH_TIMEOUT + LEAVING)

    def state(self, fault: str) -> State:
        """Return the state after a turn: memory and descriptors are the scheduler's."""
        process = self.cluster.scheduler.process.pid
        # The next run deletes leftovers of a killed worker.
        before, self.left = self.left, set(abandoned(self.place.temporary))
        return State(
            minutes=round((time.monotonic() - self.began) / 60, 2),
            turn=self.turn,
            fault=fault,
            memory_mb=soak.resident_mb(process),
            descriptors=self._descriptors(process),
            files=len(before & self.left),
            processes=len(self.cluster.strays()),
        )

    def _descriptors(self, process: int) -> int:
        """Return the open files of a process when they stay the same: connections close a moment after a run."""
        seen = [-1, -2, -3]
        while len(set(seen[-3:])) > 1:
            seen.append(open_files(process))
            time.sleep(0.5)
        return seen[-1]

    def end(self) -> None:
        """Stop the cluster in order; raise `LostError` for leftovers that no later sweep deletes."""
        for member in (*self.cluster.workers, self.cluster.scheduler):
            member.process.terminate()
            member.process.wait()
        until(lambda: not self.place.processes(), f"processes are left: {self.place.processes()}", LEAVING)
        folder.delete_left_over(self.place.temporary)
        demand(not abandoned(self.place.temporary), f"files are left: {abandoned(self.place.temporary)}")


def grown(states: Sequence[State]) -> list[str]:
    """Return quantities that are larger in each of the last turns than in any of the first."""
    if len(states) < 2 * FEW:
        return [f"{len(states)} turns are too few to measure growth"]
    names = ("memory_mb", "descriptors", "files", "processes")
    most = {name: max(getattr(state, name) for state in states[:FEW]) for name in names}
    least = {name: min(getattr(state, name) for state in states[-FEW:]) for name in names}
    return soak.grown([replace(states[FEW - 1], **most), replace(states[-1], **least)], 0)


def soaked(place: Place, seed: int, minutes: float) -> tuple[list[State], str]:
    """Soak for a time; return the state after each turn, and the losses."""
    states: list[State] = []
    cluster = Cluster(place)
    try:
        turns = ClusterSoak(place, cluster, seed, minutes)
        while time.monotonic() - turns.began < minutes * 60 or not turns.lost_scheduler:
            states.append(turns.one())
            print(asdict(states[-1]), flush=True)
        turns.end()
    except LostError as error:
        return states, str(error)
    finally:
        for member in (*cluster.workers, cluster.scheduler):
            member.kill()
    return states, ""


def parts() -> Iterator[Part]:
    """Yield the table of the soak on a cluster of harness/lab/docs/reliability.md."""
    yield Part("harness/lab/docs/reliability.md", "cluster-soak", lambda: soak.committed(TABLE))


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("cluster-soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults and their moments")
    parser.add_argument(
        "--update", action="store_true", help="write the table and the page; build/ gets all states"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Soak and print; return 1 if anything was lost or has grown."""
    with tempfile.TemporaryDirectory(prefix="cluster-soak-") as made:
        place = Place(Path(made), variables=dict(SHORT_LOGS)).make()
        place.go_on()
        states, lost = soaked(place, options.seed, options.minutes)
    return soak.concluded(states, lost, grown(states), options.update, "cluster-soak", (TABLE, CURVES))
