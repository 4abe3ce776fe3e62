"""``python -m lab seconds``: keep the seconds of exports, from results, for the shards of every clone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.results import rows as results
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share
from executorch_goldens.workers import seconds


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
            for version in sorted({row["release"] for row in rows}):
                measured = seconds.measured(row for row in rows if row["release"] == version)
                changed = seconds.write_table(goldens / version, measured)
                print(f"{goldens / version / seconds.TABLE}: {'written' if changed else 'as it was'}")
    return SAME
