"""Exports batches in the environment of a release, on the machine of a Dask worker, and stores the results.

``cluster.task`` starts it, never a person. A first line on standard input has the settings; then each line is a
batch and is answered by one line. Its templates stay warm from one batch to the next, and end with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.artifact import Artifact, Casualty, Cell, Outcome, Shortage
from executorch_goldens.errors import HarnessError
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.keys import Ingredients, Wanted, digest, request
from executorch_goldens.sweep.reuse import Lookup, Reuse
from executorch_goldens.sweep.store import Store
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import Variation


def settings_of(message: Mapping[str, Any]) -> Settings:
    """Return the settings of the run, for this machine; the inverse of `cluster.sweep.message_of`."""
    return msgspec.convert(message, Settings, dec_hook=lambda kind, value: kind(value))


def different(one: Ingredients, other: Ingredients) -> tuple[str, ...]:
    """Return the names of the ingredients that two listings do not share.

    >>> different((("python", "3.11"), ("capture", "0")), (("python", "3.12"), ("capture", "0")))
    ('python',)
    """
    return tuple(sorted({name for name, _ in {*one} ^ {*other}}))


class Exporter:
    """Exports batches by one sweep that lasts."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.reuse = Reuse(Store(Path(message["store"])))
        self.reuse.open()
        self.settings = settings_of(message)
        self.targets: list[str] = message["targets"]
        self.sweep: Sweep | None = None
        self.patches: dict[Cell, tuple[str, ...]] = {}

    def export(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a batch: see `executorch_goldens_plugins.cluster.task.export_batch`."""
        wanted = [(Cell(*each["cell"]), Variation(*each["variation"]), ()) for each in batch["exports"]]
        for each, one in zip(batch["exports"], wanted, strict=True):
            if digest(request(self.settings, one)) != each["request"]:
                return {"refused": self.differing(wanted[0], batch["listing"])}
        outcomes = list(self.outcomes(wanted))
        # A worker may be killed before it ends.
        self.reuse.close()
        lookup = self.reuse.lookup(self.settings)
        return {"rows": [self.row(outcome, one, lookup) for outcome, one in outcomes]}

    def differing(self, first: Wanted, listing: Sequence[Sequence[str]]) -> list[str]:
        """Return the names of the ingredients of a batch's first export that are others here than in `listing`."""
        theirs = tuple((name, value) for name, value in listing)
        # Where the first is the same, one is that comes later.
        return list(different(request(self.settings, first), theirs)) or ["a target"]

    def outcomes(self, wanted: Sequence[Wanted]) -> Iterator[tuple[Outcome, Wanted]]:
        """Yield stored results of the exports, then those of new exports."""
        missing: dict[Cell, list[Wanted]] = {}
        for one, kept in zip(wanted, self.reuse.take(self.settings, wanted), strict=True):
            if kept is not None:
                yield kept(), one
            else:
                missing.setdefault(one[0], []).append(one)
        if not missing:
            return
        if self.sweep is None:
            # No exports yet: it warms its templates up for the targets of the whole run.
            self.sweep = Sweep((), (), self.settings, lasting=True, targets=self.targets, reuse=self.reuse)
            self.sweep.start()
        sweep = self.sweep
        # All of them first: the next export begins while the artifact of the one before is stored.
        for cell, ones in missing.items():
            sweep.add(cell, [one[1] for one in ones])
        with ThreadPoolExecutor(self.settings.jobs) as threads:
            made = threads.map(
                lambda item: sweep.outcomes(item[0], [one[1] for one in item[1]]), missing.items()
            )
            for outcomes, ones in zip(made, missing.values(), strict=True):
                yield from zip(outcomes, ones, strict=True)

    def row(self, outcome: Outcome, wanted: Wanted, lookup: Lookup) -> dict[str, Any]:
        """Return the data to send to the run beside the entry of the store."""
        casualty = outcome.result if isinstance(outcome.result, Casualty) else None
        made = lookup.answer(digest(request(self.settings, wanted))) if casualty is None else None
        if casualty is None and made is None:
            # A failure of the moment (executorch_goldens.sweep.reuse): not kept, and so nothing to hand over.
            assert isinstance(outcome.result, Artifact)
            casualty = Shortage(os.uname().nodename)
        return {
            "cell": [wanted[0].target, wanted[0].case],
            "variation": wanted[1].name,
            "made": made,
            "casualty": msgspec.to_builtins(casualty),
            "seconds": outcome.seconds,
            "peak_mb": outcome.peak_mb,
            "core_seconds": outcome.core_seconds,
        }

    def end(self) -> None:
        """Leave no process."""
        if self.sweep is not None:
            self.sweep.stop()
        self.reuse.close()


def main() -> None:
    """Entry point: batches on standard input, answers on the original standard output."""
    # Whatever a zoo prints goes to the worker's log.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    exporter: Exporter | None = None
    try:
        settings = json.loads(sys.stdin.readline())
        for line in sys.stdin:
            try:
                exporter = exporter or Exporter(settings)
                answer = exporter.export(json.loads(line))
            except HarnessError as error:
                answer = {"error": str(error)}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    finally:
        if exporter is not None:
            with contextlib.suppress(HarnessError):
                exporter.end()
