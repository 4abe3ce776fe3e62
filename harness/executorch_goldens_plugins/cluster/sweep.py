"""A sweep whose exports are made on a Dask cluster."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import math
import os
import selectors
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens import extensions
from executorch_goldens.artifact import AnyCasualty, Cell, Outcome
from executorch_goldens.running.additions import Addition
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.facts import View
from executorch_goldens.sweep.keys import digest, request
from executorch_goldens.sweep.messages import of_settings
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.schedule import Job
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.zoo.variations import Variation
from executorch_goldens_plugins.cluster import PYTHON, WITH_DASK
from executorch_goldens_plugins.cluster.lines import Lines

#: Code of the client.
MAIN = "from executorch_goldens_plugins.cluster.client import main; main()"

#: Exports of a batch, at most, for each job of a worker: enough that handing it over costs nothing, few enough that a
#: worker that dies loses little.
LARGEST = 16
#: Batches that the exports that are left would give each worker if all were as large as the next one. So batches shrink
#: towards the end of a run, and no worker is idle long there.
TURNS = 4


@dataclass(frozen=True)
class Batch:
    """Exports of some cells under one variation, which one worker makes.

    Attributes
    ----------
    attempt
        Number of workers that have refused it.
    """

    number: int
    jobs: tuple[Job, ...]
    attempt: int = 0


def message_of(settings: Settings, release: str, targets: Sequence[str]) -> dict[str, Any]:
    """Return the settings as they cross to the exporters; these have interpreters and stores of their own."""
    shared = msgspec.to_builtins(settings, enc_hook=of_settings)
    for fields, own in ((shared, ("interpreter", "jobs")), (shared["machine"], ("root", "paths"))):
        for name in own:
            del fields[name]
    return {"release": release, "targets": targets, **shared}


class Cluster(Addition):
    """``--cluster``, with the address of the scheduler."""

    @property
    def place(self) -> str:
        """The address."""
        return str(self.value)

    def sweep(
        self,
        release: str,
        cells: Sequence[Cell],
        variations: Sequence[Variation],
        settings: Settings,
        reuse: Reuse | None,
    ) -> ClusterSweep:
        """Return a sweep whose exports the cluster makes."""
        assert reuse is not None
        return ClusterSweep(self.place, release, cells, variations, settings, reuse)


class ClusterSweep(Sweep):
    """All exports of some cells under some variations, made by the workers of a Dask cluster.

    Parameters
    ----------
    address
        Address of the scheduler, ``tcp://host:8786``.
    release
        Release that the workers must offer.
    cells, variations, settings
        See `Sweep`.
    """

    def __init__(
        self,
        address: str,
        release: str,
        cells: Sequence[Cell],
        variations: Sequence[Variation],
        settings: Settings,
        reuse: Reuse,
    ) -> None:
        super().__init__(cells, variations, settings)
        self.reuse: Reuse = reuse
        self.address = address
        self.release = release
        self.kept = 0
        #: Workers that were refused, to the names of the ingredients that they do not share with the run.
        self.refused: dict[str, tuple[str, ...]] = {}
        #: Batches that were handed out and are not answered, by number.
        self.waiting: dict[int, Batch] = {}

    def doing(self) -> str:
        """Say how much is in the hands of the workers: which of it is being exported, only the scheduler knows."""
        count = sum(len(batch.jobs) for batch in list(self.waiting.values()))
        return f"{count} exports are with the workers of {self.address}"

    def work(self, expected: Callable[[Cell], float]) -> Iterator[tuple[float, float, bool]]:
        yield from super().work(expected)
        for batch in list(self.waiting.values()):
            yield from ((expected(job.cell), 0.0, False) for job in batch.jobs)

    # The methods below run in the sweep's thread.

    def _run(self) -> None:
        try:
            self._take_stored()
            if jobs := self.schedule.empty():
                self._spread(jobs)
        except BaseException as error:
            self._fail(error)

    def _spread(self, jobs: Sequence[Job]) -> None:
        """Pass `jobs` to the client and deliver the results, until all are there or the sweep is stopped."""
        python = Path(os.environ.get(PYTHON) or sys.executable)
        log = self.directory / "client.log"
        command = [*with_harness(python, MAIN), self.address, str(self.reuse.store.root)]
        with log.open("wb") as errors:
            try:
                client = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, **extensions.handed_on()},
                    start_new_session=True,
                )
            except OSError as error:
                raise self._error(f"{PYTHON}={python} cannot be run ({error.strerror})") from error
        assert client.stdin is not None
        requests = Lines(client.stdin)
        try:
            self._serve(client, requests, log, jobs)
        finally:
            client.kill()
            client.wait()
            requests.finish()
            with contextlib.suppress(BrokenPipeError):
                client.stdin.close()

    def _serve(
        self, client: subprocess.Popen[bytes], requests: Lines, log: Path, jobs: Sequence[Job]
    ) -> None:
        assert client.stdout is not None
        requests.add(message_of(self.settings, self.release, self.targets))
        begun = False
        buffer = b""
        with selectors.DefaultSelector() as selector:
            selector.register(client.stdout, selectors.EVENT_READ)
            while not self.stopping and (self.waiting or not begun):
                if not selector.select(0.1):
                    continue
                chunk = os.read(client.stdout.fileno(), 1 << 20)
                if not chunk:
                    last = " ".join(log.read_text(errors="replace").split("\n")[-2:]).strip()
                    raise self._error(f"its client ended ({last}): {WITH_DASK}")
                *lines, buffer = (buffer + chunk).split(b"\n")
                for answer in map(json.loads, lines):
                    if "error" in answer:
                        raise self._error(answer["error"])
                    if begun:
                        self._answered(requests, answer)
                    else:
                        self._begin(requests, answer["workers"], answer["jobs"], jobs)
                        begun = True

    def _error(self, what: str) -> SweepError:
        kept = f"; {self.kept} exports are in the store and are not made again" if self.kept else ""
        return SweepError(f"--cluster {self.address}: {what}{kept}")

    def _begin(self, requests: Lines, workers: int, slots: int, jobs: Sequence[Job]) -> None:
        """Hand out all exports, to workers that make `slots` of them at once."""
        if not workers:
            raise self._error(
                f"no worker there can export with ExecuTorch {self.release}; start one in a checkout of this "
                f"repository: nox -s worker -- {shlex.quote(self.address)} -t {self.release}",
            )
        found = batches(jobs, workers, slots)
        self.waiting = {batch.number: batch for batch in found}
        for batch in found:
            requests.add(self._message(batch, more=batch is not found[-1]))

    def _answered(self, requests: Lines, answer: Mapping[str, Any]) -> None:
        batch = self.waiting.pop(answer["batch"])
        if "refused" in answer:
            self.refused[answer["worker"]] = tuple(answer["refused"])
            if not answer["left"]:
                raise self._error(self._all_refused())
            again = replace(batch, attempt=batch.attempt + 1)
            self.waiting[batch.number] = again
            requests.add(self._message(again))
            return
        rows = {(*row["cell"], row["variation"]): row for row in answer["rows"]}
        lookup = self.reuse.lookup(self.settings)
        made = [row["made"] for row in answer["rows"] if row["made"] is not None]
        if (fact := next(filter(None, map(lookup.differing, made)), None)) is not None:
            # Its dependencies there differ from those here: no later batch of that worker's would fit, either.
            self.waiting[batch.number] = again = replace(batch, attempt=batch.attempt + 1)
            self.refused[answer["worker"]] = (str(fact),)
            requests.add({**self._message(again), "refuse": [answer["worker"], str(fact)]})
            return
        for job in batch.jobs:
            ended = self._ended(job, lookup.view, rows[job.cell.target, job.cell.case, job.variation.name])
            with self.changed:
                self.results[job.cell][job.variation] = ended
                self.ended.append(job.cell)
                self.changed.notify_all()

    def _ended(self, job: Job, view: View, row: Mapping[str, Any]) -> Callable[[], Outcome]:
        """Return a reader of a job's outcome; raise SweepError where its entry does not match its key."""
        if row["casualty"] is not None:
            figures = (row["seconds"], row["peak_mb"], row["core_seconds"])
            casualty = msgspec.convert(row["casualty"], AnyCasualty)
            return lambda: Outcome(job.cell, job.variation.name, casualty, *figures)
        if self.reuse.store.content(row["made"]) is None:
            raise self._error(f"the result of {job} arrived damaged: run again")
        self.kept += 1
        return self.reuse.stored(view, self._wanted(job), row["made"])

    def _message(self, batch: Batch, more: bool = False) -> dict[str, Any]:
        wanted = [self._wanted(job) for job in batch.jobs]
        return {
            "batch": batch.number,
            "attempt": batch.attempt,
            "more": more,
            "listing": request(self.settings, wanted[0]),
            "exports": [
                {
                    "cell": [cell.target, cell.case],
                    "variation": [variation.hash_seed, variation.heap_seed],
                    "request": digest(request(self.settings, (cell, variation, patches))),
                }
                for cell, variation, patches in wanted
            ],
        }

    def _all_refused(self) -> str:
        said = "; ".join(f"{worker} differs in {', '.join(names)}" for worker, names in self.refused.items())
        return f"no worker's exports would be this machine's: {said}"


def batches(jobs: Sequence[Job], workers: int, slots: int) -> list[Batch]:
    """Put the exports of some cells under one variation into each batch, fewer towards the end.

    A worker needs one template for a batch of one variation. Cells keep their order, and batches of the same cells
    follow each other: a cell is judged when the last of its exports is there.

    Parameters
    ----------
    workers, slots
        Number of workers, and of exports that all of them make at once.
    """
    by_cell: dict[Cell, list[Job]] = {}
    for job in jobs:
        by_cell.setdefault(job.cell, []).append(job)
    cells = collections.deque(by_cell.values())
    each = math.ceil(slots / workers)
    left = len(jobs)
    found: list[Batch] = []
    while cells:
        size = max(each, min(LARGEST * each, math.ceil(left / (TURNS * workers))))
        by_variation: dict[Variation, list[Job]] = {}
        for job in itertools.chain.from_iterable(cells.popleft() for _ in range(min(size, len(cells)))):
            by_variation.setdefault(job.variation, []).append(job)
        for same in by_variation.values():
            found.append(Batch(len(found), tuple(same)))
            left -= len(same)
    return found
