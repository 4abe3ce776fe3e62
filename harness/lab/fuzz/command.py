"""``python -m lab fuzz``: draws small models, exports each under two variations and judges it as a cell."""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock

from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError, UsageError
from executorch_goldens.results.rows import lock
from executorch_goldens.running.selection import require_flatc, require_targets
from executorch_goldens.settings import releases
from executorch_goldens.settings.arguments import positive_float, positive_int, share
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, cores
from executorch_goldens.sweep.sweep import SweepError
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.zoo import variations
from lab import pages
from lab.fuzz import explained, names, page
from lab.fuzz.explained import Explanation
from lab.fuzz.kept import Judged, Key, Lines
from lab.fuzz.search import ZOO, Search, results_of

#: Part of ``--minutes`` that is kept for making failures smaller.
SHRINKING = 0.3
#: Minutes without ``--minutes`` and ``--models``.
MINUTES = 20.0
#: Targets without ``--target``: those that every case of the zoo is exported for.
TARGETS = ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "fuzz",
        description="Draw small models, export each under two variations, judge it as a cell, and make one failure of "
        "each cause smaller. A run goes on where an earlier one was stopped.",
    )
    share(parser.add_argument, "--release")
    parser.add_argument("--seed", type=int, default=0, help="of the names (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first model")
    parser.add_argument(
        "--models", type=positive_int, metavar="N", help="how many models (default: till time is over)"
    )
    parser.add_argument(
        "--minutes", type=positive_float, help=f"stop after (default: {MINUTES:g}, none with --models)"
    )
    parser.add_argument(
        "--target", action="append", metavar="TARGET", help=f"repeatable (default: {', '.join(TARGETS)})"
    )
    parser.add_argument("--no-shrinking", action="store_true", help="only export and judge")
    parser.add_argument(
        "--results", type=Path, default=Path("build/fuzz"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument(
        "--update", action="store_true", help="write the results to harness/lab/docs/generator.md"
    )
    parser.add_argument("--show", metavar="NAME", help="print a model as Python; exports nothing")
    share(parser.add_argument, "--jobs", default=cores())
    share(parser.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Search, print the findings, write them to the page if asked."""
    if arguments.show is not None:
        print(names.drawn(arguments.show).source(), end="")
        return SAME
    numbers = chosen(arguments)
    searching = search(arguments)
    wanted = (names.name(arguments.seed, number) for number in numbers)
    table = explained.load()
    try:
        searching.folder.mkdir(parents=True, exist_ok=True)
        with lock(searching.folder).acquire(timeout=0):
            found = carry_out(searching, wanted, arguments, table)
    except filelock.Timeout as error:
        raise UsageError(
            f"a different run works in {searching.folder}: wait for it, or give this one another --results"
        ) from error
    except OSError as error:
        raise UsageError(f"--results {searching.folder} cannot be written: {error}") from error
    except SweepError as error:
        raise CommandError(str(error)) from error
    print(*summary(found, table), sep="\n")
    if arguments.update:
        page.keep(searching.release.version, found, table)
        pages.update(["fuzz"])
    return SAME


def chosen(arguments: argparse.Namespace) -> range:
    """Return the numbers of the models that are asked for; raise UsageError."""
    end = arguments.first + arguments.models if arguments.models else names.END
    if arguments.seed < 0 or not 0 <= arguments.first < end <= names.END:
        raise UsageError(
            f"--seed is 0 or more, and the models of a seed have the numbers 0 to {names.END - 1}"
        )
    return range(arguments.first, end)


def carry_out(
    searching: Search, wanted: Iterator[str], arguments: argparse.Namespace, table: Sequence[Explanation]
) -> page.Found:
    """Export, judge and make smaller, as long as there is time; return all results that there are."""
    start = time.monotonic()
    minutes = arguments.minutes or (math.inf if arguments.models else MINUTES)
    exporting = 1.0 if arguments.no_shrinking else 1.0 - SHRINKING
    for row in searching.export(wanted, start + 60 * minutes * exporting):
        if row.wrong:
            print(line(row, explained.finding(row, table)), flush=True)
    found = page.Found(searching.judged.open(), right_later(arguments.results, searching.release.version))
    if not arguments.no_shrinking:
        left = [row for _, members in found.left(table) for row in members]
        for minimal in searching.shrink(left, start + 60 * minutes):
            print(f"minimal: {minimal.target}/{minimal.model}: {', '.join(minimal.operators)}", flush=True)
    return found


def search(arguments: argparse.Namespace) -> Search:
    """Return the search for the release that is installed; raise UsageError."""
    environment = here(arguments.release)
    release = environment.release
    targets = tuple(dict.fromkeys(arguments.target or TARGETS))
    require_targets(targets, "--target")
    if missing := [name for name in targets if name not in release.targets]:
        raise UsageError(
            f"--target {missing[0]} is not supported on ExecuTorch {release.version}: {release.unsupported[missing[0]]}"
        )
    require_flatc(environment.python)
    settings = environment.settings((ZOO,), arguments.jobs, arguments.export_timeout)
    return Search(
        release,
        settings,
        variations.variations(variations.named("quick")),
        targets,
        arguments.results.absolute() / release.version,
    )


def line(row: Judged, finding: str) -> str:
    cause = f"{row.cause.verdict}: {row.target}/{row.model}: {row.reason}"
    return f"{cause} [{finding or row.cause.where or 'nowhere'}]"


def right_later(results: Path, release: str) -> frozenset[Key]:
    """Return the failures that a later release does not show, for models exported in both."""
    versions = list(releases.load().releases)
    later = versions[versions.index(release) + 1 :]
    same = {"drawing": names.digest()}
    kept = (Lines(results_of(results, version), Judged, same) for version in later)
    return frozenset(row.key for lines in kept for row in lines.there() if not row.wrong)


def summary(found: page.Found, table: Sequence[Explanation]) -> Iterator[str]:
    """Yield how many cells have which verdict, and the causes to look into."""
    for verdict, count in sorted(Counter(row.cause.verdict for row in found.rows).items()):
        alike = [row for row in found.rows if row.cause.verdict == verdict and row.wrong]
        known = sum(bool(explained.finding(row, table)) for row in alike)
        yield f"{verdict}: {count}" + (f", {known} explained by a finding" if known else "")
    for cause, members in found.left(table):
        cells = ", ".join(f"{row.target}/{row.model}" for row in members[:3])
        yield f"{len(members)} x {cause.verdict}: {cause.where}: {cause.what} ({cells})"
