"""``python -m lab tolerances``: how much of their tolerances programs take, from the results of runs."""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.results import merging

#: Shares of a tolerance up to which cells are counted; the last is the whole.
PARTS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "tolerances",
        description="Print a Markdown table: by release and target, how far right programs are from eager, how far "
        "they may be, and how many take how much of their tolerance.",
    )
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="DIR", help="folders that hold the results of runs"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; raise `executorch_goldens.results.merging.MergeError` for a folder without such results."""
    rows = []
    for release, parts in merging.find(arguments.results).items():
        for part in parts:
            if any("used" not in row for row in part.rows):
                raise merging.MergeError(
                    f"{part.folder} has the results of an earlier version: run the cells again"
                )
            rows += [(release, row) for row in part.rows]
    print("\n".join(table(rows)))
    return SAME


def table(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the lines of the table.

    Parameters
    ----------
    rows
        A release and a line of results.jsonl. One without a program that is right and runs counts for nothing.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for release, row in rows:
        if row["difference"] is not None:
            found[release, row["target"]].append(row)
    yield (
        "| release | target | cells | equal to the last bit | error, median and worst | tolerance, median and worst | "
        + " | ".join(f"takes up to {part:g}" for part in PARTS)
        + " | takes most |"
    )
    yield "|---|---|" + "---:|" * (len(PARTS) + 4) + "---|"
    for (release, target), cells in sorted(found.items()):
        inexact = [row for row in cells if row["difference"] > 0.0]
        counts = [
            sum(least < row["used"] <= most for row in inexact)
            for least, most in zip((0.0, *PARTS), PARTS, strict=False)
        ]
        most = max(cells, key=lambda row: float(row["used"]))
        yield (
            f"| {release} | {target} | {len(cells)} | {len(cells) - len(inexact)} | {_spread(inexact, 'difference')} | "
            f"{_spread(inexact, 'tolerance')} | {' | '.join(map(str, counts))} | "
            + (f"{most['case']}, {most['used']:.2f} |" if inexact else "- |")
        )


def _spread(rows: list[Mapping[str, Any]], field: str) -> str:
    """Return the median and the largest of a field; a dash where there are no rows."""
    values = [float(row[field]) for row in rows]
    return f"{statistics.median(values):.1e}, {max(values):.1e}" if values else "-"
