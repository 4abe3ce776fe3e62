"""Passes batches of a run to a Dask scheduler, and results back to the run: its only process that imports Dask.

``cluster.sweep`` starts it, never a person. It is given the scheduler's address and the directory of the run's
store; a first line on standard input has the settings, and each further one a batch with its number. It answers in
lines as well: ``{"workers": 2}`` once, then ``{"batch": 7, "worker": "tcp://...", "rows": [...]}`` with the entries put
into the store, or ``{"batch": 7, "worker": "tcp://...", "refused": [...], "left": 1}`` with the
number of workers that are not refused, or ``{"error": "..."}``, after which it
ends. It ends as well when its standard input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.cluster import RESOURCE, WITH_DASK
from executorch_goldens.cluster.task import export_batch
from executorch_goldens.store.store import Store, StoreError

#: Seconds within which a scheduler answers.
PATIENCE = 10.0

LOST = "the Dask scheduler at {} does not answer any more"


async def serve(address: str, store: Store, answers: Answers) -> None:
    """Serve until the batches end."""
    from distributed import Client

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 28)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    settings = json.loads(await reader.readline())
    async with Client(address, asynchronous=True, timeout=PATIENCE) as client:
        relay = Relay(client, store, settings, address, answers)
        answers.add({"workers": len(await relay.workers())})
        tasks: set[asyncio.Task[None]] = set()
        watching = asyncio.create_task(relay.watch())
        while line := await reader.readline():
            tasks.add(asyncio.create_task(relay.pass_on(json.loads(line))))
            tasks = {task for task in tasks if not task.done()}
        # The run has what it wanted, or is no more.
        for task in (watching, *tasks):
            task.cancel()


class Relay:
    """Hands batches to the scheduler, and answers for each.

    Attributes
    ----------
    refused
        Addresses of workers whose machine is not like the run's.
    """

    def __init__(
        self, client: Any, store: Store, settings: Mapping[str, Any], address: str, answers: Answers
    ) -> None:
        self.client = client
        self.store = store
        self.settings = settings
        self.address = address
        self.answers = answers
        self.resource = RESOURCE.format(settings["release"])
        self.refused: set[str] = set()

    async def workers(self) -> list[str]:
        """Return the addresses of the workers that can export with the release, and were not refused."""
        found = (await self.client.scheduler.identity(n_workers=-1))["workers"]
        return [
            worker
            for worker, state in found.items()
            if self.resource in state["resources"] and worker not in self.refused
        ]

    async def watch(self) -> None:
        """Say when the scheduler is gone."""
        while self.client.status == "running":
            await asyncio.sleep(1.0)
        self.answers.add({"error": LOST.format(self.address)})

    async def pass_on(self, batch: Mapping[str, Any]) -> None:
        """Have one batch exported by some worker that is not refused, and answer for it."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        number = batch["batch"]
        if "refuse" in batch:
            worker, differing = batch["refuse"]
            self.refused.add(worker)
            if not await self.workers():
                self.answers.add({"batch": number, "worker": worker, "refused": [differing], "left": 0})
                return
        try:
            future = self.client.submit(
                export_batch,
                self.settings,
                batch,
                key=f"goldens-{id(self)}-{number}-{batch['attempt']}",
                pure=False,
                resources={self.resource: 1},
                # None lets the scheduler wait for workers that come later.
                workers=await self.workers() if self.refused else None,
            )
            answer = await future
        except KilledWorker as error:
            self.answers.add({"error": f"a batch ends every worker that exports it ({error})"})
            return
        except FutureCancelledError:
            # The client does so when it loses its scheduler: `watch` may not have seen it yet.
            self.answers.add({"error": LOST.format(self.address)})
            return
        except Exception as error:
            self.answers.add({"error": f"a batch could not be exported: {type(error).__name__}: {error}"})
            return
        if "refused" in answer:
            self.refused.add(answer["worker"])
            answer["left"] = len(await self.workers())
        try:
            for (folder, key), content in answer.pop("entries", {}).items():
                if content is not None:
                    self.store.add(key, content, folder)
        except StoreError as error:
            self.answers.add({"error": f"a batch came back that cannot be kept: {error}"})
            return
        self.answers.add({"batch": number, **answer})


def say(message: Mapping[str, Any]) -> None:
    """Answer, and wait till the run has read everything before: never called in the event loop, which must not wait."""
    print(json.dumps(message), flush=True)


class Answers:
    """Answers the exporter on a thread of its own: the event loop serves Dask however slowly the run reads."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="answers", daemon=True)
        self._writer.start()

    def add(self, message: Mapping[str, Any]) -> None:
        """Answer as soon as the run has read everything before."""
        self._waiting.put(message)

    def finish(self) -> None:
        """Wait until every answer is with the run, or the run is no more."""
        self._waiting.put(None)
        self._writer.join()

    def _write(self) -> None:
        # Where the run is no more, nobody waits for an answer.
        with contextlib.suppress(BrokenPipeError):
            while (message := self._waiting.get()) is not None:
                say(message)


def main() -> None:
    """Entry point: the scheduler's address and the store's directory are its arguments."""
    address, root = sys.argv[1:]
    answers = Answers()
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
