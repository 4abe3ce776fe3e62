"""``python -m lab bench [MEASUREMENT...]``: ratios of seconds and memory, measured side by side.

Each measurement is repeated, and prints the minimum, the median and the maximum of each of its ratios with its goal.
Both sides of a ratio are measured in the same run: what else the machine does meets both.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

from lab import REPOSITORY, pages
from lab.bench import baseline, decode, exports
from lab.bench.measurement import HEADING, Goal, Measurement, keep, repeated, state, write_json

MEASUREMENTS = {
    one.name: one
    for one in (
        Measurement("decode", decode.GOALS, decode.measure),
        Measurement(
            "isolation",
            (Goal(exports.FRESH, 7), Goal(exports.PYTEST, 2), Goal(exports.INSIDE, None)),
            exports.isolation,
        ),
        Measurement("tracing", (Goal(exports.TRACING, 1.15, at_most=True),), exports.tracing),
        Measurement("baseline", baseline.goals(), baseline.measure, default=False),
    )
}


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("bench", description=__doc__)
    parser.add_argument(
        "measurements",
        nargs="*",
        metavar="MEASUREMENT",
        help=f"which: {', '.join(MEASUREMENTS)}; by default those that take minutes, not more",
    )
    parser.add_argument("--repeats", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--json", type=Path, default=REPOSITORY / "build" / "bench.json", metavar="FILE")
    parser.add_argument(
        "--update", action="store_true", help="put a row for each ratio into the history, and write the page"
    )
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    """Measure, print and keep; return 1 if a median misses its goal."""
    if unknown := [name for name in options.measurements if name not in MEASUREMENTS]:
        options.refuse(f"no measurement is called {unknown[0]!r}; there are {', '.join(MEASUREMENTS)}")
    if options.repeats < 1:
        options.refuse(f"--repeats {options.repeats} measures nothing: give at least 1")
    names = options.measurements or [name for name, one in MEASUREMENTS.items() if one.default]
    print(HEADING, flush=True)
    measured = []
    for name in names:
        for one in repeated(MEASUREMENTS[name], options.repeats):
            measured.append(one)
            print(one.line(), flush=True)
    on = state()
    write_json(options.json, measured, on)
    if options.update:
        keep(measured, on, datetime.date.today().isoformat())
        pages.update(["bench"])
    return int(any(not one.goal.is_met(one.median) for one in measured))
