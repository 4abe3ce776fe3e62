"""``python -m lab branches``: which branches of the installed release's sources exports take."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from executorch_goldens.artifact import Casualty, Cell, Outcome
from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files import durable
from executorch_goldens.running import core
from executorch_goldens.running.options import CORE, FULL, TIERS
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import positive_float, share
from executorch_goldens.settings.config import Config
from executorch_goldens.settings.exports import Settings, cores
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.zoo.variations import variations
from lab import branches, pages
from lab.branches import page
from lab.branches.records import Records
from lab.branches.sources import Sources, require_coverage
from lab.guests import ZOOS

#: The records of the repository's own zoo, beside those of guest zoos, which have the names of these.
OWN = "zoo"
#: Further zoos, by name: the situations (harness/lab/docs/history.md), and those of guests.
MODULES = {page.SITUATIONS: "models.situations", **{name: zoo.module for name, zoo in ZOOS.items()}}
#: Seconds between two looks at the clock while an export is waited for.
LOOK = 1.0


def add_to(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "branches",
        description="Export cells that have no record yet, each once, and record which branches they take; then print "
        "the results of all records. A run continues where an earlier one was stopped.",
    )
    parser.add_argument("--zoo", choices=tuple(MODULES), help="in place of the repository's own")
    parser.add_argument("--tier", choices=TIERS, default=CORE, help="of its own zoo (default: %(default)s)")
    share(parser.add_argument, "--cell")
    parser.add_argument("--minutes", type=positive_float, help="begin no export after (default: none)")
    parser.add_argument("--again", action="store_true", help="also export cells that have a record")
    parser.add_argument("--so-far", action="store_true", help="export nothing")
    parser.add_argument("--update", action="store_true", help="write the tables and the page")
    parser.add_argument(
        "--records", type=Path, default=Path("build/branches"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument(
        "--drawn",
        type=Path,
        default=Path("build/fuzz"),
        metavar="DIR",
        help="results of fuzz, whose records count as those of the generator (default: %(default)s)",
    )
    share(parser.add_argument, "--jobs", default=cores())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Record the chosen cells, then print or write the results of all records."""
    require_coverage()
    environment = here()
    release = environment.release
    repository = config.load()
    if not options.so_far:
        folder = repository.goldens / release.version
        cells = load_cells(zoos(options.zoo, repository), release)
        # A further zoo has no core of this kind.
        tier = FULL if options.zoo else options.tier
        wanted = core.chosen(cells, options.cell, tier, folder)
        records = Records((options.records / release.version / (options.zoo or OWN)).absolute())
        if not options.again:
            known = records.cells()
            wanted = [cell for cell in wanted if cell not in known]
        settings = environment.settings(
            zoos(options.zoo, repository),
            options.jobs,
            tolerances=repository.tolerances,
            observer=branches.RECORDER,
        )
        deadline = time.monotonic() + 60 * (options.minutes or math.inf)
        done = 0
        try:
            for outcome in record(wanted, settings, records, deadline) if wanted else ():
                done += 1
                if isinstance(outcome.result, Casualty):
                    print(f"{outcome.cell}: {outcome.result.verdict}: no record", file=sys.stderr)
        except SweepError as error:
            raise CommandError(str(error)) from error
        print(f"{done} of {len(wanted)} cells exported", file=sys.stderr)
    sources = Sources(environment.site_packages / "executorch")
    taken = groups(options, release, repository, sources)
    if not options.update:
        print(*page.page(release.version, sources.branches(), taken), sep="\n")
        return SAME
    files = (page.branches_of(release.version), page.cells_of(release.version))
    for path, content in zip(files, page.texts(sources.branches(), taken), strict=True):
        durable.replace(path, content)
        print(f"{path}: written")
    pages.update(["branches"])
    return SAME


def zoos(further: str | None, repository: Config) -> tuple[str, ...]:
    """Return the modules of a further zoo, or of the repository's own for None."""
    return repository.zoos(None) if further is None else (MODULES[further],)


def record(
    wanted: Sequence[Cell], settings: Settings, records: Records, deadline: float
) -> Iterator[Outcome]:
    """Export cells until a time by `time.monotonic`, and yield the result of each; the exports write the records."""
    os.environ[branches.RECORDS] = str(records.folder)
    with Sweep(wanted, variations((0,)), settings) as sweep:
        for cell in wanted:
            while not sweep.ready(cell, LOOK):
                if time.monotonic() > deadline:
                    return
            yield from sweep.outcomes(cell)


def groups(
    options: argparse.Namespace, release: Release, repository: Config, sources: Sources
) -> dict[str, page.Taken]:
    """Return the records of each group of exports; of one without records, the earlier table's."""
    folder = options.records / release.version
    own = Records(folder / OWN)
    # A group without records may be missing, or have no cells.
    further = {name: Records(folder / name) for name in MODULES if (folder / name).exists()}
    drawn = Records(options.drawn / release.version / "branches")
    of_core = core.read(repository.goldens / release.version / core.FILE)
    of_further = {name: load_cells((MODULES[name],), release) for name in further}

    def taken(of: Iterable[tuple[Records, Iterable[Cell]]], known: int | None) -> page.Taken:
        pairs = [(records, records.cells().keys() & set(cells)) for records, cells in of]
        found = set(
            itertools.chain.from_iterable(sources.taken(records.of(cells)) for records, cells in pairs)
        )
        return page.Taken(sum(len(cells) for _, cells in pairs), known, found)

    def of_zoos(names: Iterable[str]) -> page.Taken:
        there = [name for name in names if name in further]
        known = sum(len(of_further[name]) for name in there)
        return taken([(further[name], of_further[name]) for name in there], known)

    # Once loaded, the situations are part of the repository's own zoo.
    own_cells = load_cells(repository.zoos(None), release)
    of_zoo = [cell for cell in own_cells if cell not in of_further.get(page.SITUATIONS, ())]
    found = {
        page.CORE: taken([(own, of_core)], len(of_core)),
        page.ZOO: taken([(own, of_zoo)], len(of_zoo)),
        page.SITUATIONS: of_zoos([page.SITUATIONS]),
        page.GUESTS: of_zoos(ZOOS),
        page.DRAWN: taken([(drawn, drawn.cells())], None),
    }
    _, before = page.read(release.version)
    return {group: each if each.cells else before.get(group, each) for group, each in found.items()}
