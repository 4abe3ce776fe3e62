"""The command ``lab mutants --mechanical``: draws, tries over the cells that reach a mutant, counts."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import SAME
from executorch_goldens.files import durable
from executorch_goldens.reach import map as maps
from executorch_goldens.running import core
from executorch_goldens.running.options import CORE, FULL
from executorch_goldens.running.plan import Plan
from executorch_goldens.sweep import seconds
from executorch_goldens.toolchains.toolchain import here
from lab import pages
from lab.mutants.mechanical import drawing, page
from lab.mutants.mechanical.drawing import Mechanical
from lab.mutants.mechanical.reach import Reach
from lab.mutants.mechanical.search import Found, Kept, Search, with_golden

#: The module that registers drawn mutants in exporting processes.
INSTALLED = "lab.mutants.mechanical.installed"
#: Of the repository: what was found, which a stopped session goes on from.
BUILD = Path("build/mutants")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that are of use with ``--mechanical`` alone."""
    group = parser.add_argument_group("mechanical mutants")
    group.add_argument(
        "--mechanical",
        action="store_true",
        help="mutants that are made by operators of mutation and drawn by chance, over the cells that run their lines: "
        "those of the core, and with --tier full then others",
    )
    group.add_argument("--seed", type=int, default=drawing.SEED, help="of the drawing (default: %(default)s)")
    group.add_argument(
        "--count", type=int, default=drawing.COUNT, help="mutants drawn (default: %(default)s)"
    )


def run(planned: Plan, options: argparse.Namespace) -> int:
    """Print a line a mutant and tier, then the page's section; with ``--update`` write the table and the page."""
    environment = here()
    every = drawing.every_site(environment.site_packages / "executorch")
    drawn = drawing.draw(every, options.seed, options.count)
    print(f"{len(drawn)} of {len(every)} sites drawn: {drawing.digest(drawn)}", file=sys.stderr)
    known = maps.read(planned.root / maps.FILE)
    of_core, others = (Reach(known, cells) for cells in tiers(planned))
    found = {CORE: over(planned, drawn, of_core, CORE, options)}
    left = [mutant for mutant in drawn if not found[CORE].get(mutant.name, page.UNTRIED).killed]
    found[FULL] = over(planned, left, others, FULL, options) if options.tier == FULL else {}
    rows = page.rows(drawn, found[CORE], found[FULL])
    print(*page.figures(rows), sep="\n")
    if options.update:
        durable.replace(page.FOUND, page.text(rows))
        durable.replace(
            page.DRAWING,
            page.drawing_text(options.seed, len(every), drawn, len(of_core.cells), len(others.cells)),
        )
        pages.update(["mutants"])
    return SAME


def tiers(planned: Plan) -> tuple[list[Cell], list[Cell]]:
    """Return the cells with a golden: those of the core, the cheapest first; then others, by target in turn."""
    known = seconds.committed(planned.root)
    in_order = sorted(with_golden(planned, planned.zoo), key=lambda cell: (known.of(cell), str(cell)))
    of_core = set(core.read(planned.root / core.FILE))
    others = [cell for cell in in_order if cell not in of_core]
    return [cell for cell in in_order if cell in of_core], in_turn(others)


def in_turn(cells: Sequence[Cell]) -> list[Cell]:
    """Return the first cell of each target, then the second of each, and so on."""
    number: Counter[str] = Counter()
    numbered = []
    for cell in cells:
        numbered.append((number[cell.target], cell))
        number[cell.target] += 1
    return [cell for _, cell in sorted(numbered, key=lambda pair: pair[0])]


def over(
    planned: Plan, drawn: Sequence[Mechanical], reached: Reach, tier: str, options: argparse.Namespace
) -> dict[str, Found]:
    """Return the results of cells for each mutant, by name; print them as they come."""
    kept = Kept(BUILD / f"mechanical-{tier}.jsonl", reached.cells)
    if options.so_far:
        return kept.read(drawn)
    searching = Search(planned, drawn, BUILD / "drawn.json")
    found = {}
    for each in searching.over(reached, kept):
        found[each.mutant] = each
        print(
            f"{tier} {each.mutant} {each.verdict} {each.cell} {each.named} {each.tried}/{each.reach}",
            flush=True,
        )
    return found
