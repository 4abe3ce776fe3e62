"""``python -m lab fielded TOOLCHAIN ...``: programs of each release in the runtime of each other.

It makes the programs of a release in that release's environment, runs them in every
environment, and compares what came of them with the goldens.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError, UsageError
from executorch_goldens.files.invocation import UPDATE, require_a_person
from executorch_goldens.running import core
from executorch_goldens.running.options import CORE, FULL, TIERS
from executorch_goldens.running.selection import load_cells, select
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.config import Config
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, cores
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.store import Store, default_root
from executorch_goldens.sweep.sweep import SweepError
from executorch_goldens.toolchains.toolchain import Toolchain
from lab import GOLDENS, pages
from lab.fielded import corpus, goldens, page, running
from lab.fielded.goldens import Change, Pair
from lab.fielded.judging import Outcome, is_clean, judge
from lab.fielded.programs import Programs
from lab.toolchains import all_of

#: The command, as messages print it.
CALLED = "nox -s lab -- fielded"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "fielded",
        description="Run the programs of each release in the runtime of each other, and compare with the goldens.",
    )
    parser.add_argument(
        "toolchains", nargs="*", metavar="TOOLCHAIN", help="releases and others (default: every release)"
    )
    parser.add_argument("--new", metavar="VERSION", help="only the pairs that this release is one of")
    parser.add_argument(
        "--tier", choices=TIERS, help="of the zoo of each release (default: core; full with --cell)"
    )
    share(parser.add_argument, "--cell")
    parser.add_argument(UPDATE, action="store_true", help="accept the results as goldens")
    share(parser.add_argument, "--goldens")
    parser.add_argument(
        "--programs",
        type=Path,
        default=Path("build/fielded"),
        metavar="DIR",
        help="where programs are kept (default: %(default)s)",
    )
    share(parser.add_argument, "--jobs", default=cores())
    share(parser.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the outcome of each pair, and the table; return 0 if all are as reviewed or accepted, else 1."""
    require_a_person(options.snapshot_update)
    repository = config.load()
    root = options.goldens or repository.goldens
    found = all_of(options.toolchains)
    wanted = pairs(tuple(found), options.new)
    started = time.monotonic()
    try:
        made = programs(found, wanted, options, repository)
        outcomes: dict[Pair, dict[Cell, Outcome]] = {pair: {} for pair in wanted}
        for version in dict.fromkeys(pair.run for pair in wanted):
            before = time.monotonic()
            rows = [pair for pair in wanted if pair.run == version]
            run_all(found[version], rows, made, options.jobs, outcomes)
            print(f"ExecuTorch {version}: {time.monotonic() - before:.0f} s", flush=True)
    except SweepError as error:
        raise CommandError(str(error)) from error
    matrix = list(releases.load().releases)
    changes: list[Change] = []
    for pair in wanted:
        changes += pair_compared(pair, outcomes[pair], found, root, options, repository, matrix)
    print(f"{len(wanted)} pairs in {time.monotonic() - started:.0f} s")
    print("same / within rounding / broken / not right on its own release; * promised")
    print("\n".join(page.table({pair: texts(outcomes[pair]) for pair in wanted}, tuple(found))))
    if options.snapshot_update:
        if root.resolve() == GOLDENS:
            pages.update(["fielded"])
        print(f"accepted: {len(changes)} lines")
        return SAME
    for change in changes:
        print(change.line())
    if changes:
        print(f"accept: {again(options)} {UPDATE}")
    return DIFFERENT if changes else SAME


def pairs(versions: Sequence[str], new: str | None) -> list[Pair]:
    """Return the pairs to run, runtime by runtime; raise UsageError for a new release without an environment."""
    if new is not None and new not in versions:
        raise UsageError(f"--new {new!r} is not one of the releases given: {', '.join(versions)}")
    every = [Pair(made, run) for run in versions for made in versions]
    return [pair for pair in every if new is None or new in (pair.made, pair.run)]


def programs(
    found: Mapping[str, Toolchain], wanted: Sequence[Pair], options: argparse.Namespace, repository: Config
) -> dict[str, list[Path]]:
    """Make the programs that are missing; return the files of those of each release. Raise `SweepError`."""
    reuse = Reuse(Store(repository.cache_dir or default_root()))
    reuse.open()
    made: dict[str, list[Path]] = {}
    matched = set()
    for version in dict.fromkeys(pair.made for pair in wanted):
        environment = found[version]
        cells = chosen(environment.release, options, repository)
        matched |= set(cells)
        settings = environment.settings(
            repository.zoos(None), options.jobs, options.export_timeout, tolerances=repository.tolerances
        )
        of_release = Programs(version, settings, options.programs / version, reuse)
        missing = of_release.missing(cells)
        print(f"programs of {version}: {len(cells) - len(missing)} kept, {len(missing)} to make", flush=True)
        for shipped in of_release.make(missing) if missing else ():
            if not shipped.programs:
                print(f"  {shipped.cell}: no program: its export fails, or has no delegate", flush=True)
        files = map(of_release.path, cells)
        made[version] = [file for file in files if corpus.read(file).programs]
    if not matched:
        raise UsageError(f"--cell {' '.join(options.cell)}: no cell of {', '.join(made)} matches")
    reuse.close()
    return made


def chosen(release: Release, options: argparse.Namespace, repository: Config) -> list[Cell]:
    """Return the cells of a release whose programs are run."""
    known: Sequence[Cell] = load_cells(repository.zoos(None), release, repository.targets)
    file = (options.goldens or repository.goldens) / release.version / core.FILE
    tier = options.tier or (FULL if options.cell or not file.exists() else CORE)
    if options.cell:
        # A release may lack what others have.
        selected = {cell for pattern in options.cell for cell in matching(known, pattern)}
        known = [cell for cell in known if cell in selected]
    if tier == CORE:
        of_core = set(core.read(file))
        known = [cell for cell in known if cell in of_core]
    return list(known)


def matching(known: Sequence[Cell], pattern: str) -> frozenset[Cell]:
    try:
        return select(known, [pattern])
    except UsageError:
        return frozenset()


def run_all(
    environment: Toolchain,
    rows: Sequence[Pair],
    made: Mapping[str, Sequence[Path]],
    jobs: int,
    outcomes: Mapping[Pair, dict[Cell, Outcome]],
) -> None:
    """Run the programs of `rows` in an environment, and put their results into `outcomes`."""
    of_release = {pair.made: pair for pair in rows}
    files = [file for pair in rows for file in made[pair.made]]
    for shipped, ran in running.run(environment.python, files, jobs):
        outcomes[of_release[shipped.release]][shipped.cell] = judge(shipped, ran)


def pair_compared(
    pair: Pair,
    outcomes: Mapping[Cell, Outcome],
    found: Mapping[str, Toolchain],
    root: Path,
    options: argparse.Namespace,
    repository: Config,
    matrix: Sequence[str],
) -> list[Change]:
    """Print the outcome of a pair; return its differences from the golden, which is written if accepted."""
    promised = goldens.promise(pair, matrix)
    print(f"{pair.made} on {pair.run} ({promised}): {summary(outcomes)}")
    for cell, outcome in sorted(outcomes.items()):
        if not is_clean(outcome.text):
            print(f"  {cell}: {outcome.text}")
    lines = texts(outcomes)
    known = load_cells(repository.zoos(None), found[pair.made].release, repository.targets)
    reviewed = goldens.read(pair, root) or {}
    changes = goldens.compared(pair, reviewed, lines, known)
    if options.snapshot_update and lines:
        accepted = goldens.accepted(reviewed, lines, known)
        tools = found[pair.run].release.pins["tosa-tools"]
        goldens.write(pair.file(root), list(goldens.text(pair, accepted, promised, tools)))
    return changes


def texts(outcomes: Mapping[Cell, Outcome]) -> dict[Cell, str]:
    return {cell: outcome.text for cell, outcome in outcomes.items()}


def summary(outcomes: Mapping[Cell, Outcome]) -> str:
    """Return the counts of a pair in words."""
    same, rounding, broken, own = page.counts(texts(outcomes))
    furthest = max((outcome.furthest for outcome in outcomes.values()), default=0.0)
    within = f" (at most {furthest:.2g} of the largest value off)" if rounding else ""
    return f"{same} same, {rounding} within rounding{within}, {broken} broken, {own} not right on its own release"


def again(options: argparse.Namespace) -> str:
    """Return the command that makes the same run."""
    words = [CALLED]
    words += ["--new", options.new] if options.new else []
    words += ["--tier", options.tier] if options.tier else []
    words += [word for pattern in options.cell or () for word in ("--cell", f"'{pattern}'")]
    return " ".join(words)
