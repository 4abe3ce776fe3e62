"""Deals batches of a run to workers of a Dask scheduler and passes results back: its only process that imports Dask.

``cluster.sweep`` starts it, never a person. It is given the scheduler's address and the directory of the run's
store; a first line on standard input has the settings, and each further one a batch with its number, and whether
there is ``more`` to read before batches are dealt. It answers in lines as well: ``{"workers": 2, "jobs": 8}`` once, the
exports that all workers make at once being the second, then ``{"batch": 7, "worker": "tcp://...", "rows": [...]}`` with
the entries put into the store, or ``{"batch": 7, "worker": "tcp://...", "refused": [...], "left": 1}`` with the
number of workers that are not refused, or ``{"error": "..."}``, after which it
ends. It ends as well when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.sweep.store import Store, StoreError
from executorch_goldens_plugins.cluster import RESOURCE, WITH_DASK
from executorch_goldens_plugins.cluster.dealing import Dealing
from executorch_goldens_plugins.cluster.lines import Lines
from executorch_goldens_plugins.cluster.task import export_batch

#: Seconds within which a scheduler answers.
PATIENCE = 10.0

#: Seconds between two looks at the scheduler and its workers.
WATCH = 1.0

#: Workers that may be gone before they answer a batch, as Dask's ``allowed-failures``: one more, and it ends them.
LOSSES = 3

LOST = "the Dask scheduler at {} does not answer any more"


async def serve(address: str, store: Store, answers: Lines) -> None:
    """Serve until the batches end."""
    from distributed import Client

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 28)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    settings = json.loads(await reader.readline())
    async with Client(address, asynchronous=True, timeout=PATIENCE) as client:
        relay = Relay(client, store, settings, address, answers)
        await relay.update()
        answers.add({"workers": len(relay.jobs), "jobs": sum(relay.jobs.values())})
        watching = asyncio.create_task(relay.watch())
        while line := await reader.readline():
            await relay.take(json.loads(line))
        # The run has what it wanted, or is no more.
        for task in (watching, *relay.tasks.values()):
            task.cancel()


class Relay:
    """Deals batches to workers through the scheduler, and answers for each.

    A task is restricted to the worker that its batch is dealt to: Dask lets no other worker steal it, and runs it
    nowhere when the worker is gone, so the relay deals the batch again. With ``allow_other_workers`` Dask could run it
    on a worker without the release, or on one that was refused.

    Attributes
    ----------
    refused
        Addresses of workers whose machine is not like the run's.
    batches
        The unanswered batches, by number.
    more
        Whether the run is about to send another batch: none is dealt before that.
    at
        The worker that has a batch, by the number of the batch.
    tasks
        Tasks that wait for it, by the same numbers.
    lost
        Number of workers that were gone before they answered, by the number of the batch.
    """

    def __init__(
        self, client: Any, store: Store, settings: Mapping[str, Any], address: str, answers: Lines
    ) -> None:
        self.client = client
        self.store = store
        self.settings = settings
        self.address = address
        self.answers = answers
        self.resource = RESOURCE.format(settings["release"])
        self.refused: set[str] = set()
        self.dealing = Dealing()
        self.batches: dict[int, Mapping[str, Any]] = {}
        self.more = False
        self.at: dict[int, str] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.lost: Counter[int] = Counter()
        self._updating = asyncio.Lock()

    @property
    def jobs(self) -> Mapping[str, int]:
        """Exports at a time of each worker that can export with the release and was not refused."""
        return self.dealing.jobs

    async def update(self) -> None:
        """Ask the scheduler for its workers and deal to them, also the batches of workers that are gone."""
        async with self._updating:
            try:
                found = (await self.client.scheduler.identity(n_workers=-1))["workers"]
            except OSError:
                self.answers.add({"error": LOST.format(self.address)})
                return
            there = {
                worker: int(state["resources"][self.resource])
                for worker, state in found.items()
                if self.resource in state["resources"]
            }
            self.dealing.jobs = {worker: jobs for worker, jobs in there.items() if worker not in self.refused}
            for number in [number for number, worker in self.at.items() if worker not in there]:
                self._lose(number)
            self.deal()

    async def watch(self) -> None:
        """Note which workers come and go, and say when the scheduler is gone."""
        while self.client.status == "running":
            await asyncio.sleep(WATCH)
            await self.update()
        self.answers.add({"error": LOST.format(self.address)})

    async def take(self, batch: Mapping[str, Any]) -> None:
        """Let a batch wait for a worker; the worker that the run refuses with it gets no more."""
        if "refuse" in batch:
            worker, differing = batch["refuse"]
            self.refused.add(worker)
            await self.update()
            if not self.jobs:
                self.answers.add(
                    {"batch": batch["batch"], "worker": worker, "refused": [differing], "left": 0}
                )
                return
        self.batches[batch["batch"]] = batch
        self._let_wait(batch["batch"])
        self.more = batch["more"]
        self.deal()

    def deal(self) -> None:
        """Give workers the batches that they can take now."""
        if self.more:
            return
        for worker, number in self.dealing.deal():
            self.at[number] = worker
            self.tasks[number] = asyncio.create_task(self._export(worker, number))

    def _let_wait(self, number: int) -> None:
        exports = self.batches[number]["exports"]
        self.dealing.add(number, json.dumps(exports[0]["variation"]), len(exports))

    def _lose(self, number: int) -> None:
        """Let a batch wait again whose worker is gone."""
        self.tasks.pop(number).cancel()
        self.dealing.end(self.at.pop(number), number, exported=False)
        self.lost[number] += 1
        if self.lost[number] > LOSSES:
            self.answers.add({"error": f"a batch ended {self.lost[number]} workers that exported it"})
        self._let_wait(number)

    async def _export(self, worker: str, number: int) -> None:
        """Have a batch exported by a worker, and answer for it; cancelled where the worker is gone."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        batch = self.batches[number]
        try:
            answer = await self.client.submit(
                export_batch,
                self.settings,
                batch,
                key=f"goldens-{id(self)}-{number}-{batch['attempt']}-{self.lost[number]}",
                pure=False,
                resources={self.resource: 1},
                workers=[worker],
            )
        except KilledWorker:
            # With Dask's allowed-failures at 0: the relay counts by itself.
            self._lose(number)
            self.deal()
            return
        except FutureCancelledError:
            # The client does so when it loses its scheduler: `watch` may not have seen it yet.
            self.answers.add({"error": LOST.format(self.address)})
            return
        except Exception as error:
            self.answers.add({"error": f"a batch could not be exported: {type(error).__name__}: {error}"})
            return
        # It is not lost from here on, whatever becomes of its worker.
        del self.tasks[number], self.at[number], self.batches[number]
        self.dealing.end(worker, number, exported="rows" in answer)
        if "refused" in answer:
            self.refused.add(worker)
            await self.update()
            answer["left"] = len(self.jobs)
        else:
            self.deal()
        try:
            for key, content in answer.pop("entries", {}).items():
                if content is not None:
                    self.store.add(key, content)
        except StoreError as error:
            self.answers.add({"error": f"a batch came back that cannot be kept: {error}"})
            return
        self.answers.add({"batch": number, **answer})


def main() -> None:
    """Entry point: the scheduler's address and the store's directory are its arguments."""
    address, root = sys.argv[1:]
    answers = Lines(sys.stdout.buffer)
    try:
        asyncio.run(serve(address, Store(Path(root)), answers))
    except ImportError as error:
        answers.add({"error": f"its client has no Dask ({error}): {WITH_DASK}"})
    except OSError as error:
        way_out = "start one with `dask scheduler`, correct the address, or leave --cluster out"
        answers.add({"error": f"no Dask scheduler answers at {address} ({error}): {way_out}"})
    finally:
        answers.finish()


if __name__ == "__main__":
    main()
