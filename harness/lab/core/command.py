"""``python -m lab core``: the core of each release, drawn from what cells reach, kill and see.

Exports nothing. A committed core is right as long as it has what a core must have; ``--update`` draws one that lacks
something again. A release without a map of reach keeps its core.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files import durable
from executorch_goldens.running import core
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share
from executorch_goldens_plugins.compare.reach import map as maps
from lab import pages
from lab.core import computing
from lab.core.wanted import DEAR, Source
from lab.reach.owners import bits

#: What has results of each cell of a core.
FURTHER = "fielded --snapshot-update"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("core", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write it, and its page")
    share(parser.add_argument, "--release", help="of this release alone")
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what each release's core is; return 0 if all are right or were written, else 1."""
    goldens = options.goldens or config.load().goldens
    versions = [options.release] if options.release else list(releases.load().releases)
    found = [version for version in versions if (goldens / version).is_dir()]
    if not found:
        raise CommandError(f"{goldens} has no goldens of {' or '.join(versions)}: name a root with --goldens")
    same = True
    for version in found:
        if not (goldens / version / maps.FILE).is_file():
            print(f"{version}: no map of reach, so that the core stays as it is; make one by: {maps.UPDATE}")
            continue
        same = settle(Source.from_root(goldens, version), options.update) and same
    if not same:
        print(f"accept: {core.UPDATE}")
    if options.update and options.goldens is None:
        pages.update(["core", "mutants", "reach"])
    return SAME if same else DIFFERENT


def settle(source: Source, update: bool) -> bool:
    """Print what the committed core of a release is, and what is left; return whether it is right, or was written."""
    file = source.folder / core.FILE
    lacking = computing.lacking(source, source.committed)
    chosen: Sequence[int] = computing.drawn(source) if lacking else ()
    written = update and bool(lacking)
    if written:
        durable.replace(file, computing.text(source, chosen))
    state = (
        "written"
        if written
        else f"lacks {'; '.join(computing.shown(lacking))}"
        if lacking
        else "as committed"
    )
    print(f"{file}: {state}")
    print(f"  {described(source, source.committed)}")
    if written:
        print(f"  its cells are those of a further instrument, which keeps results: {FURTHER}")
    if chosen:
        print(f"  drawn: {described(source, bits(chosen))}")
    for name in source.unkept():
        print(f"  only a cell without a golden of the zoo, or one of more than {DEAR:.0f} s, sees {name}")
    needless = computing.superfluous(source, bits(chosen) or source.committed)
    print(
        f"  {len(needless)} cells add nothing to the others: {' '.join(str(source.cell(each)) for each in needless)}"
    )
    return written or not lacking


def described(source: Source, cells: int) -> str:
    """Return how many some cells are, and what they have."""
    kills, sees = (
        sum(1 for having in named.values() if having & cells) for named in (source.mutants, source.fixes)
    )
    return (
        f"{cells.bit_count()} cells, {source.seconds(cells):.1f} s, {source.reached(cells)} statements, {kills} of "
        f"{len(source.mutants)} mutants, {sees} of {len(source.fixes)} fixes"
    )
