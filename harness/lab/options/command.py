"""``python -m lab options``: a matrix of options of quantizers and of lowering; every pair of values is in a program.

It lists how many programs each release can make, and what the others lack for the rest. ``--update`` draws
rows for the pairs that lack one, and ``--show NAME`` prints one. ``python -m lab guest options`` runs the programs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from lab.options import rows
from lab.options.cases import ARRAYS, all_rows, changed, releases_of
from lab.options.factors import OPTIONS, RELEASES, Row


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("options", description=__doc__)
    parser.add_argument("--update", action="store_true", help="draw rows for the pairs that the array lacks")
    parser.add_argument("--show", metavar="NAME", help="print the options of a program")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw rows, show a row, or count programs by release."""
    if options.update:
        for array in ARRAYS:
            durable.replace(array.file, rows.text(array, rows.drawn(array)))
    found = all_rows()
    if options.show:
        if options.show not in found:
            raise UsageError(
                f"no program is called {options.show!r}; they are {next(iter(found))} to {[*found][-1]}"
            )
        print(*shown(found[options.show]), sep="\n")
        return SAME
    print(f"{len(found)} programs, {', '.join(map(rows.digest, ARRAYS))}")
    for release in RELEASES:
        there, lacking = counted(release)
        left = f"; {sum(lacking.values())} left out, by their first option that it lacks: " if lacking else ""
        print(f"{release}: {there}{left}{', '.join(f'{name} ({count})' for name, count in lacking.items())}")
    return SAME


def counted(release: str) -> tuple[int, Counter[str]]:
    """Return how many programs a release can make, and how many of the others lack which option."""
    there, lacking = 0, Counter[str]()
    for row in all_rows().values():
        if release in releases_of(row):
            there += 1
            continue
        lacking[next(lacks(row, release))] += 1
    return there, lacking


def lacks(row: Row, release: str) -> Iterator[str]:
    """Yield the options of a row that a release lacks."""
    for name, value in changed(row).items():
        if release not in OPTIONS[name][value].releases:
            yield f"{name} {value}"


def shown(row: Row) -> Iterator[str]:
    """Yield the lines about a row: its model, and each option that is set."""
    yield f"model: {row.model}"
    yield from (f"{name} {value}: {OPTIONS[name][value].says}" for name, value in changed(row).items())
    yield f"releases: {' '.join(releases_of(row))}"
