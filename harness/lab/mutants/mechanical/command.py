"""``python -m lab mutants``: defects that are drawn by rule, over the cells that run their lines.

Mutants of the installed release are made by operators of mutation and drawn by chance. Each is tried on unlike cells of
all sources that run its lines, those of the core first. Results are kept in ``build/mutants``, a line a mutant, so that
a session that was stopped goes on.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import SAME
from executorch_goldens.files import durable
from executorch_goldens.running import core
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import positive_float
from executorch_goldens.settings.exports import cores
from executorch_goldens.toolchains.toolchain import Toolchain, here
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.map import ReachMap
from lab import GOLDENS, pages
from lab.mutants.mechanical import drawing, page, searching
from lab.mutants.mechanical.drawing import Mechanical
from lab.mutants.mechanical.reach import Reach
from lab.mutants.mechanical.search import Found, Kept, Search
from lab.mutants.mechanical.sites import Site

#: The module that registers drawn mutants in exporting processes.
INSTALLED = "lab.mutants.mechanical.installed"
#: The module, with those below it, that registers cells with whole goldens.
ZOO = "models"
#: Of the repository: what was found, which a stopped session goes on from.
BUILD = Path("build/mutants")


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("mutants", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=drawing.SEED, help="of the drawing (default: %(default)s)"
    )
    parser.add_argument(
        "--count", type=int, default=drawing.COUNT, help="mutants drawn (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, help="exports at a time; default: one per core")
    parser.add_argument(
        "--search",
        action="store_true",
        help="before, compare those that no cell kills by two names: their search may find a model that does",
    )
    parser.add_argument(
        "--budget", type=positive_float, help="minutes of each of these (default: the command's)"
    )
    parser.add_argument("--minutes", type=positive_float, help="try no mutant after (default: none)")
    parser.add_argument("--so-far", action="store_true", help="export nothing")
    parser.add_argument(
        "--update", action="store_true", help="write the results, and harness/lab/docs/mutants.md"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a line for each mutant; with ``--update`` write the tables of the release, and the page."""
    toolchain = here()
    version = toolchain.release.version
    root = GOLDENS / version
    every = drawing.every_site(toolchain.site_packages / "executorch")
    drawn = drawing.draw(every, options.seed, options.count)
    print(f"{len(drawn)} of {len(every)} sites drawn: {drawing.digest(drawn)}", file=sys.stderr)
    reached = maps.read(root / maps.FILE)
    kept = Kept(BUILD / f"mechanical-{version}.jsonl", version)
    before = page.of_drawing(version, drawing.digest(drawn))
    found = {
        row.mutant: Found(row.mutant, (), row.killers, row.verdict, row.named)
        for row in before
        if row.killers
    }
    found |= kept.read(drawn)
    until = time.monotonic() + 60 * (options.minutes or math.inf)
    compared = BUILD / f"compared-{version}-{drawing.digest(drawn)}"
    if options.search:
        read = page.read_survivors(version)
        left = [each for each in drawn if each.name not in found or not found[each.name].killed_by]
        holes = [each for each in left if read.get(each.name, ("",))[0] != page.EQUIVALENT]
        searching.search(toolchain, holes, compared, options)
    if not options.so_far:
        further = searching.found(drawn, compared)
        for each in tried(toolchain, reached, drawn, found, kept, options.jobs, until, further):
            found[each.mutant] = each
            print(f"{each.mutant} {each.verdict} {each.named} {' '.join(each.killed_by)}", flush=True)
    if options.update:
        reach = Reach(reached, toolchain.site_packages)
        found |= {each.name: Found(each.name) for each in drawn if not reach.cells(each.site)}
        folder = page.FOLDER / version
        durable.replace(folder / page.FOUND, page.text(drawn, found, before))
        durable.replace(folder / page.DRAWING, page.drawing_text(options.seed, len(every), drawn))
        pages.update(["mutants"])
    return SAME


def tried(
    toolchain: Toolchain,
    reached: ReachMap,
    drawn: Sequence[Mechanical],
    found: Mapping[str, Found],
    kept: Kept,
    jobs: int | None,
    until: float,
    further: Mapping[Site, Sequence[Cell]],
) -> Iterator[Found]:
    """Yield the results of cells for each mutant; of some sites, of further ones than the map has."""
    sources = tuple(dict.fromkeys((*reached.sources, calls.ARGS)))
    load_zoo(sources)
    # A program that is wrong with a mutant is a different one, which is enough.
    settings = toolchain.settings(
        (*sources, INSTALLED), jobs or cores(), tolerances=config.load().tolerances, execute=False
    )
    search = Search(toolchain.release, settings, drawn, BUILD / f"drawn-{toolchain.release.version}.json")
    reach = Reach(reached, toolchain.site_packages, further)
    searched = [cell for cells in further.values() for cell in cells]
    yield from search.over(reach, [*tiers(reached), searched], dict(found), kept, until)


def tiers(reached: ReachMap) -> list[list[Cell]]:
    """Return the cells of a map: those of the core, others of the zoo, and those of other sources."""
    of_core = set(core.read(GOLDENS / reached.release / core.FILE))
    made: list[list[Cell]] = [[], [], []]
    for each in reached.cells:
        in_zoo = reached.sources[each.source].partition(".")[0] == ZOO
        made[0 if each.cell in of_core else 1 if in_zoo else 2].append(each.cell)
    return made
