"""The function a Dask worker calls with a batch: it passes it to an exporter in the release's environment."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from executorch_goldens import extensions
from executorch_goldens.sweep.store import Store, facts_of
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens_plugins.cluster import OFFER

#: Code of the exporter.
MAIN = "from executorch_goldens_plugins.cluster.exporter import main; main()"

#: Seconds without a batch after which an exporter, and the templates that it keeps warm, are ended.
IDLE = 60.0


class ExporterProcess:
    """An exporter's process, which keeps its templates warm between batches.

    Attributes
    ----------
    settings
        Settings of the sweep that it runs.
    """

    def __init__(self, settings: Mapping[str, Any], variables: Iterable[str]) -> None:
        self.settings = settings
        self.process = subprocess.Popen(
            with_harness(Path(settings["interpreter"]), MAIN),
            env={
                **{name: os.environ[name] for name in variables if name in os.environ},
                **extensions.handed_on(),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(settings)

    def export(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Export a batch; returns the exporter's answer, or an error where it ended without one."""
        self._send(batch)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return {
                "error": f"the exporter ended with status {self.process.wait()}; the worker's log says why"
            }
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        # That it has ended is noticed where its answer ends.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """End the process, and wait until nothing of it is left."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


_lock = threading.Lock()
_exporter: ExporterProcess | None = None
_idle: threading.Timer | None = None


def export_batch(settings: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Export a batch on this machine; Dask calls this in its worker.

    Parameters
    ----------
    settings
        Data of `cluster.sweep` about the whole run: ``release``, and the fields of a sweep's settings.
    batch
        ``exports``, each with its ``cell``, ``variation`` and ``request``, and the ``listing`` of what the first asks.

    Returns
    -------
    dict
        Of ``rows``, one an export, and ``entries``, by key what the store has of each; or of ``refused``,
        the names of the ingredients that this machine does not share with the run; or of ``error``, what the harness
        could not do.
    """
    global _exporter, _idle
    from distributed import get_worker

    offer = json.loads(os.environ[OFFER])
    with _lock:
        if _idle is not None:
            _idle.cancel()
        here = {
            **settings,
            "jobs": offer["jobs"],
            "store": offer["store"],
            "interpreter": offer["interpreters"][settings["release"]],
        }
        if _exporter is not None and (_exporter.settings != here or _exporter.process.poll() is not None):
            _exporter.end()
            _exporter = None
        if _exporter is None:
            _exporter = ExporterProcess(here, offer["variables"])
        answer = _exporter.export(batch)
        _idle = threading.Timer(IDLE, _end_idle)
        _idle.daemon = True
        _idle.start()
    store = Store(Path(offer["store"]))
    made = [row["made"] for row in answer.get("rows", ()) if row["made"] is not None]
    entries = {key: store.content(key) for key in (*made, *facts_of(*made))}
    return {**answer, "worker": get_worker().address, "entries": entries}


def _end_idle() -> None:
    global _exporter
    with _lock:
        if _exporter is not None:
            _exporter.end()
            _exporter = None
