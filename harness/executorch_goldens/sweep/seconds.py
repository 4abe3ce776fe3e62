"""Duration of one export of each cell, measured by earlier runs.

Two files remember it. ``<goldens>/<release>/seconds.txt`` is committed: a coarse table, the same in every clone, which
balances shards. ``<sweeps>/<release>/seconds.json`` is this machine's, and every run adds to it. Both decide the order
of exports.
"""

from __future__ import annotations

import contextlib
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from executorch_goldens.artifact import Casualty, Cell, Outcome
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.merging import bring_back

TABLE = "seconds.txt"
LOCAL = "seconds.json"

#: Runs that the local file remembers: their median is not that of one busy hour.
RUNS = 5

#: Seconds of an export if no export has been measured.
UNKNOWN = 2.0

#: Seconds that were measured.
Duration = Annotated[float, msgspec.Meta(ge=0.0)]

#: How a table that took one side of a merge is completed.
UPDATE = "run 'nox -s lab -- seconds' where results are at hand"


class SecondsError(HarnessError, ValueError):
    """A table of seconds that cannot be read; the message names the line."""


@dataclass(frozen=True)
class Seconds:
    """Seconds of one export by cell, and the default for cells without a measurement."""

    measured: Mapping[Cell, float]

    def expected(self, cell: Cell) -> float:
        """Return those of `cell`, or else the median of its target's, or of all."""
        if cell in self.measured:
            return self.measured[cell]
        alike = [value for other, value in self.measured.items() if other.target == cell.target]
        return statistics.median(alike or self.measured.values() or [UNKNOWN])

    def longest_first(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return `cells` so that no core is idle at the end; those that take the same keep their order."""
        cells = list(cells)
        seconds = {cell: self.expected(cell) for cell in cells}
        return sorted(cells, key=lambda cell: -seconds[cell])

    def in_order(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return `cells` in the order of a run: the quickest, whose verdict comes soon, then the longest first."""
        ordered = self.longest_first(cells)
        if not ordered or self.expected(ordered[0]) == self.expected(ordered[-1]):
            return ordered
        return [ordered[-1], *ordered[:-1]]


def of_exports(outcomes: Sequence[Outcome]) -> float:
    """Return the cost of one export of a cell: core seconds, or the wait for one that never finished."""
    return statistics.median(
        outcome.seconds if isinstance(outcome.result, Casualty) else outcome.core_seconds
        for outcome in outcomes
    )


def committed(root: Path) -> Seconds:
    """Return the table of a release's goldens; empty if missing; raise SecondsError."""
    path = root / TABLE
    try:
        lines = untrusted.text(path).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return Seconds({})
    except (OSError, ValueError) as error:
        raise SecondsError(f"{path} cannot be read ({error}); {bring_back(path, UPDATE)}") from error
    known = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        try:
            name, value = line.split()
            if not 0.0 <= float(value) < math.inf:
                raise ValueError("no number of seconds")
            known[Cell.named(name)] = float(value)
        except ValueError as error:
            raise SecondsError(
                f"{path}:{number}: {line!r} is not TARGET/CASE SECONDS; {bring_back(path, UPDATE)}"
            ) from error
    return Seconds(known)


class Remembered:
    """Durations of a release's exports on this machine.

    Parameters
    ----------
    folder
        Folder of the results of the release.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / LOCAL
        self.runs: dict[str, list[float]] = {}
        # Only a help: a file that cannot be read is as good as none.
        with contextlib.suppress(OSError, ValueError):
            read = msgspec.json.decode(untrusted.text(self.file), type=dict[str, list[Duration]])
            for cell in read:
                Cell.named(cell)
            self.runs = read

    def over(self, table: Seconds) -> Seconds:
        """Return `table` updated with this machine's measurements."""
        here = {Cell.named(cell): statistics.median(values) for cell, values in self.runs.items() if values}
        return Seconds({**table.measured, **here})

    def note(self, cell: Cell, outcomes: Sequence[Outcome]) -> None:
        """Remember the seconds of the exports of `cell`."""
        if (value := of_exports(outcomes)) > 0.0:
            self.runs[str(cell)] = [*self.runs.get(str(cell), ()), round(value, 2)][-RUNS:]

    def write(self) -> None:
        durable.replace(self.file, json.dumps(self.runs, indent=0) + "\n")
