"""``python -m lab seconds``: keep the seconds of exports, from results, for the shards of every clone."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files import durable
from executorch_goldens.results import rows as results
from executorch_goldens.results.rows import ResultRow
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share
from executorch_goldens.sweep.seconds import TABLE, committed

HEAD = "# Core seconds of one export of each cell, for shards; `nox -s lab -- seconds` writes this.\n"

#: Relative error of the table below which an update leaves it: a rewritten table does not churn.
TOLERANCE = 0.25

#: Verdicts of cells whose processor time says nothing of how long they took.
CASUALTIES = ("crashed", "timed-out", "out-of-memory")


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "seconds",
        description="Update goldens/<release>/seconds.txt from the results of runs. A cell keeps "
        "its line unless it is off by more than a quarter.",
    )
    parser.add_argument(
        "results",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="folders with results, or with those of several releases (default: of [tool.goldens])",
    )
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the tables."""
    repository = config.load()
    goldens = arguments.goldens or repository.goldens
    for folder in arguments.results or [repository.sweeps]:
        files = sorted(folder.glob(f"**/{results.FILE}"))
        if not files:
            raise CommandError(f"{folder} has no {results.FILE}: name a folder with the results of a run")
        for file in files:
            rows = results.read(file)
            for version in sorted({row.release for row in rows}):
                of_version = measured(row for row in rows if row.release == version)
                changed = write_table(goldens / version, of_version)
                print(f"{goldens / version / TABLE}: {'written' if changed else 'as it was'}")
    return SAME


def measured(rows: Iterable[ResultRow]) -> dict[Cell, float]:
    """Return the seconds of one export of each cell that lines of results.jsonl tell."""
    found = {}
    for row in rows:
        ended = row.verdict not in CASUALTIES and any(row.core_seconds)
        values = row.core_seconds if ended else row.seconds
        if values:
            found[row.cell] = statistics.median(values)
    return found


def write_table(root: Path, measured: Mapping[Cell, float]) -> bool:
    """Bring the table of a release's goldens up to date; return whether a line of it changed.

    A cell that was not measured keeps its line.
    """
    before = committed(root).measured
    table = dict(before)
    for cell, value in measured.items():
        if abs(value - before.get(cell, 0.0)) > TOLERANCE * value:
            table[cell] = round(value, 1)
    if table == before:
        return False
    lines = (f"{cell} {value:.1f}\n" for cell, value in sorted(table.items(), key=lambda item: str(item[0])))
    durable.replace(root / TABLE, HEAD + "".join(lines))
    return True
