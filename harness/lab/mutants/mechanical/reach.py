"""Lines of the mutated sources that each cell's export runs: recorded once, and kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from executorch_goldens.artifact import Casualty, Cell
from executorch_goldens.settings.exports import Settings
from lab.branches.command import record
from lab.branches.records import Records
from lab.branches.sources import require_coverage
from lab.mutants.mechanical.sites import Site

#: The module that writes records, in exporting processes; it needs coverage.py.
RECORDER = "lab.mutants.mechanical.recorder:Recorder"


class Reach:
    """The lines that exports of cells run, from records in a folder.

    Parameters
    ----------
    cells
        Those that count; one without a record reaches nothing.
    """

    def __init__(self, folder: Path, cells: Sequence[Cell]) -> None:
        records = Records(folder)
        recorded = records.cells()
        self.lines = {
            cell: {
                file: {line for jump in jumps for line in jump if line > 0}
                for file, jumps in records.of([cell]).items()
            }
            for cell in cells
            if cell in recorded
        }

    def of(self, site: Site) -> list[Cell]:
        """Return the cells whose export runs a line of a site, in the order given."""
        there = set(range(site.first, site.last + 1))
        return [cell for cell, lines in self.lines.items() if there & lines.get(site.file, set())]


def record_missing(folder: Path, cells: Sequence[Cell], settings: Settings, seconds: float) -> Iterator[str]:
    """Export cells without a record, as many as begin within `seconds`; yield those that failed to leave one."""
    require_coverage()
    folder.mkdir(parents=True, exist_ok=True)
    recorded = Records(folder).cells()
    missing = [cell for cell in cells if cell not in recorded]
    # Programs are run to be judged; that takes no line of these sources.
    recording = replace(settings, observer=RECORDER, execute=False)
    outcomes = record(missing, recording, Records(folder), time.monotonic() + seconds) if missing else ()
    for outcome in outcomes:
        if isinstance(outcome.result, Casualty):
            yield f"{outcome.cell}: {outcome.result.verdict}: no record"
