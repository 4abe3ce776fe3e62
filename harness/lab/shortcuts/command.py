"""``python -m lab shortcuts``: time saved by shortcuts, and proof that bytes stay equal: each cell with and without.

It works on the release that is installed. The two exports of a cell run at the same time, one with all shortcuts and
one without those of ``--without``, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Lowered, Outcome
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.patches.shortcuts import SHORTCUTS
from executorch_goldens.running import core
from executorch_goldens.running.options import FULL, TIERS
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import Settings, cores
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.zoo.variations import named, variations


@dataclass(frozen=True)
class Pair:
    """A cell exported under one variation without and with shortcuts.

    Attributes
    ----------
    differing
        The differences of the two.
    """

    cell: Cell
    without: Outcome
    shortened: Outcome

    @property
    def differing(self) -> tuple[str, ...]:
        one, other = facts(self.without.result), facts(self.shortened.result)
        return tuple(name for name in {**one, **other} if one.get(name) != other.get(name))


def facts(result: Artifact | Casualty) -> dict[str, Any]:
    """Return, by name, all that an export made, but for seconds and tracebacks."""
    if isinstance(result, Casualty):
        # A log's lines follow the kernel's and the allocator's moods.
        return {"casualty": (result.verdict, result.reason.splitlines()[0])}
    found: dict[str, Any] = {}
    if isinstance(result.result, Failure):
        found["failure"] = result.result.facts()
        made = result.result.made
    else:
        made = result.result
    if isinstance(made, Lowered):
        found["graph"] = made.graph
        found["pte"] = made.pte
        found["outputs"] = (made.samples, made.bound, made.scales, made.codes)
        found |= {f"delegate {index}": delegate for index, delegate in enumerate(made.delegates)}
    if result.watched is not None:
        found["trace"] = [(run, run.beyond) for run in result.watched.passes]
        found["visitors"] = result.watched.visitors
    return found


def pairs(
    cells: Sequence[Cell], seeds: Sequence[int], settings: Settings, against: tuple[str, ...] = ()
) -> Iterator[Pair]:
    """Export each cell under each seed, with the shortcuts `against` and with those of `settings`, and yield both."""
    # Each of the two has half of the cores.
    half = replace(settings, jobs=max(1, settings.jobs // 2))
    chosen = variations(seeds)
    with (
        Sweep(cells, (), replace(half, shortcuts=against), lasting=True) as without,
        Sweep(cells, (), half, lasting=True) as shortened,
        ThreadPoolExecutor(2 * half.jobs) as threads,
    ):

        def both(cell: Cell) -> list[Pair]:
            found = []
            for variation in chosen:
                one = threads.submit(without.again, cell, (variation,))
                other = shortened.again(cell, (variation,))
                found.append(Pair(cell, *one.result(), *other))
            return found

        for number in range(0, len(cells), half.jobs):
            batch = [threads.submit(both, cell) for cell in cells[number : number + half.jobs]]
            for finished in batch:
                yield from finished.result()


def draw(cells: Sequence[Cell], per_target: int, seed: int) -> list[Cell]:
    """Return up to `per_target` cells of each target, drawn at random, in the order of `cells`."""
    generator = random.Random(seed)
    drawn: set[Cell] = set()
    for target in dict.fromkeys(cell.target for cell in cells):
        of_target = [cell for cell in cells if cell.target == target]
        drawn |= set(generator.sample(of_target, min(per_target, len(of_target))))
    return [cell for cell in cells if cell in drawn]


def ratios(found: Sequence[Pair]) -> Iterator[str]:
    """Yield a line per target, and one for all: core seconds without, with, and the ratio."""
    groups = {target: [pair for pair in found if pair.cell.target == target] for target in targets(found)}
    for name, group in {**groups, "all": list(found)}.items():
        before = sum(pair.without.core_seconds for pair in group)
        after = sum(pair.shortened.core_seconds for pair in group)
        peak = max(pair.shortened.peak_mb - pair.without.peak_mb for pair in group)
        yield (
            f"{name:<16}{len(group):>5} exports {before:>9.1f} s {after:>9.1f} s   ratio {after / before:.3f}   "
            f"peak memory at most {peak:+.0f} MiB"
        )


def targets(found: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(pair.cell.target for pair in found))


def add_to(subparsers: Any) -> None:
    """Add the subcommand ``shortcuts``."""
    parser = subparsers.add_parser(
        "shortcuts",
        description=__doc__,
    )
    share(parser.add_argument, "--release")
    parser.add_argument(
        "--without",
        action="append",
        choices=tuple(SHORTCUTS),
        metavar="NAME",
        help="leave this shortcut out of the baseline; repeatable (default: leave out all)",
    )
    share(parser.add_argument, "--models")
    share(parser.add_argument, "--cell")
    parser.add_argument("--tier", choices=TIERS, default=FULL, help="of the zoo (default: %(default)s)")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only N cells of each target, drawn at random"
    )
    parser.add_argument("--sample-seed", type=int, default=0, metavar="SEED", help="default: %(default)s")
    parser.add_argument(
        "--variations", default="1", metavar="quick|full|N|SEED,...", help="default: %(default)s"
    )
    share(parser.add_argument, "--jobs", default=cores())
    parser.add_argument("--verbose", action="store_true", help="a line per cell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print which cells differ, and ratios of core seconds; return 0 if no cell differs, else 1."""
    environment = here(options.release)
    release = environment.release
    repository = config.load()
    models = repository.zoos(options.models)
    folder = repository.goldens / release.version
    cells = core.chosen(load_cells(models, release), options.cell, options.tier, folder)
    if options.sample is not None:
        cells = draw(cells, options.sample, options.sample_seed)
    seeds = named(options.variations)
    without = options.without or SHORTCUTS
    against = tuple(name for name in SHORTCUTS if name not in without)
    settings = environment.settings(models, options.jobs)
    print(
        f"ExecuTorch {release.version}, {len(cells)} cells, all shortcuts; against: without {' '.join(without)}",
        flush=True,
    )
    found: list[Pair] = []
    differing = 0
    for pair in pairs(cells, seeds, settings, against):
        found.append(pair)
        parts = pair.differing
        differing += bool(parts)
        if parts or options.verbose:
            said = f"DIFFERENT: {', '.join(parts)}" if parts else "same"
            print(
                f"{pair.cell} [{pair.without.variation}]: {pair.without.core_seconds:.2f} s "
                f"{pair.shortened.core_seconds:.2f} s {said}",
                flush=True,
            )
    print("\n".join(ratios(found)))
    print(f"{differing} of {len(found)} exports differ")
    return DIFFERENT if differing else SAME
