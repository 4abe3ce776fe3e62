"""``python -m lab reach``: the map of reach of the installed release.

Each cell is exported once and not run, with the patches that its release declares; what ran is kept below
``build/reach``, a line a cell, so that a session that was stopped goes on. ``--update`` puts it into the map, where
other cells stay as they are, as long as the map is of this environment and their zoo has them. Shortcuts that replace
functions of the recorded packages are left out: what they skip is reached.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import hashlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from executorch_goldens import plugins
from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Lowered, Outcome
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import FAILURE, KNOWN, Decisions
from executorch_goldens.patches.guard import resolve
from executorch_goldens.running.selection import load_cells, select
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import positive_float, share
from executorch_goldens.settings.exports import Settings, cores
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.toolchains.toolchain import Toolchain, here
from executorch_goldens.zoo.registry import zoo_of
from executorch_goldens.zoo.variations import variations
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.exporting.instrument import instrument
from executorch_goldens_plugins.compare.reach import edits
from executorch_goldens_plugins.compare.reach import map as maps
from lab import pages
from lab.guests import ZOOS
from lab.guests.one import KNOWN_ZOOS
from lab.mutants.mechanical import drawing
from lab.mutants.mechanical.searching import killing
from lab.reach import building

#: Zoos by the module that registers their cases, those first whose cells have goldens.
SOURCES = (
    *("models", "models.situations", "models.ways", "lab.options.zoo"),
    *(zoo.module for zoo in ZOOS.values() if not zoo.layered),
)
#: Folders of what is known of zoos that have no goldens, by their modules.
LISTS = {zoo.module: zoo.folder for zoo in KNOWN_ZOOS.values()}
#: Folders of the package ``executorch`` that only cells of these backends run.
BACKENDS = ("backends/arm/", "backends/xnnpack/")
#: Seconds between two looks at the clock while an export is waited for.
LOOK = 1.0
#: Where what ran is kept.
RECORDS = Path("build/reach")


def add_to(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "reach",
        description="Export cells that have no record yet, each once, and record which statements of ExecuTorch and "
        "torchao run. A session continues where an earlier one was stopped.",
    )
    parser.add_argument(
        "--source", action="append", metavar="MODULE", help="only cells of this zoo; repeatable"
    )
    share(parser.add_argument, "--cell")
    parser.add_argument("--minutes", type=positive_float, help="begin no export after (default: none)")
    parser.add_argument("--so-far", action="store_true", help="export nothing")
    parser.add_argument("--update", action="store_true", help="put all records into the map")
    share(parser.add_argument, "--jobs", default=cores())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Record the chosen cells; write the map, or say what there is."""
    toolchain = here()
    folder = RECORDS / toolchain.release.version
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * (options.minutes or math.inf)
    every = (*SOURCES, calls.ARGS)
    for source in () if options.so_far else options.source or every:
        if source not in every:
            raise CommandError(f"--source {source}: there is none; there are {', '.join(every)}")
        if time.monotonic() < deadline:
            number = record(toolchain, source, options, folder / f"{source}.jsonl", deadline)
            print(f"{source}: {number} cells recorded", file=sys.stderr, flush=True)
    # Two sessions at once may have recorded the same cell.
    records = [
        *{each.cell: each for file in sorted(folder.glob("*.jsonl")) for each in building.read(file)}.values()
    ]
    print(f"{len(records)} records of {toolchain.release.version}")
    if time.monotonic() > deadline:
        print(f"stopped after {options.minutes:g} minutes: no map is written, and the same command goes on")
        return DIFFERENT if options.update else SAME
    if options.update:
        update(toolchain, records)
    return SAME


def record(
    toolchain: Toolchain, source: str, options: argparse.Namespace, file: Path, deadline: float
) -> int:
    """Export the cells of a source that have no record; return how many were recorded."""
    repository = config.load()
    known = {each.cell for each in building.read(file)}
    # The zoo holds the situations, which are a source of their own.
    cases = load_zoo((source,))
    if source == calls.ARGS:
        # Of these, what adds to the map is found by `lab.args`; what kills a mutant is kept for that.
        cells = sorted(killing(toolchain.release.version))
    else:
        own = {name for name, case in cases.items() if zoo_of(case, SOURCES) == source}
        cells = [cell for cell in load_cells((source,), toolchain.release) if cell.case in own]
    selected = select(cells, options.cell)
    wanted = [cell for cell in cells if cell in selected and cell not in known]
    settings = toolchain.settings(
        (source,),
        options.jobs,
        tolerances=repository.tolerances,
        execute=False,
        instrument=instrument(edits.PACKAGES),
        shortcuts=spared(),
    )
    number = 0
    try:
        with file.open("a", encoding="utf-8") as lines:
            for outcome in exported(wanted, settings, deadline):
                if isinstance(outcome.result, Casualty):
                    print(f"{outcome.cell}: {outcome.result.verdict}: no record", file=sys.stderr)
                    continue
                require_golden(repository.goldens / toolchain.release.version, outcome.cell, outcome.result)
                made = building.ReachRecord(
                    source, outcome.cell, outcome.core_seconds, facts(outcome.result), outcome.result.reach
                )
                lines.write(building.encoded(made))
                lines.flush()
                number += 1
    except SweepError as error:
        raise CommandError(str(error)) from error
    return number


def require_golden(root: Path, cell: Cell, artifact: Artifact) -> None:
    """Raise CommandError for a failure of a cell whose golden, below `root`, does not fail: recording may be why."""
    known = golden.read(golden.file_of(root, cell))
    failure = artifact.result
    if isinstance(failure, Failure) and known is not None and not known.fails:
        raise CommandError(
            f"{cell} fails, and its golden does not: {failure.type}: {failure.message.splitlines()[0]}; if "
            f"'goldens run -t {root.name} --cell {cell}' passes, recording breaks it: mend sweep/reaching.py"
        )


def spared() -> dict[str, str]:
    """Return the shortcuts that replace no function of a recorded package."""
    return {
        name: hook
        for name, hook in plugins.shortcuts().items()
        if not any(
            function.startswith(edits.PACKAGES) for fits in resolve(hook).fits.values() for function in fits
        )
    }


def exported(wanted: Sequence[Cell], settings: Settings, deadline: float) -> Iterator[Outcome]:
    """Export cells until a time by `time.monotonic`, and yield the result of each."""
    if not wanted:
        return
    with Sweep(wanted, variations((0,)), settings) as sweep:
        for cell in wanted:
            while not sweep.ready(cell, LOOK):
                if time.monotonic() > deadline:
                    return
            yield from sweep.outcomes(cell)


def facts(artifact: Artifact) -> str:
    """Return a digest of what a program is made of: its node visitors, and whether a value has several users."""
    visitors = sorted(set(artifact.watched.visitors)) if artifact.watched is not None else []
    made = artifact.result
    several = isinstance(made, Lowered) and any(
        f"num_users={number}]" in made.graph for number in range(2, 10)
    )
    text = " ".join((*visitors, str(several), type(made).__name__))
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def update(toolchain: Toolchain, records: Sequence[building.ReachRecord]) -> None:
    """Put some records into the map."""
    release = toolchain.release.version
    if not records:
        raise CommandError(f"no cell of {release} is recorded: leave out --so-far")
    path = config.load().goldens / release / maps.FILE
    kept = {each.cell: each for each in there([*kept_records(path, toolchain), *records], toolchain)}
    packages = toolchain.site_packages
    today = datetime.date.today().isoformat()
    wrong = {each.cell for each in kept.values() if is_wrong(each, release)}
    kept.update((cell, replace(kept[cell], is_wrong=True)) for cell in wrong)
    made = building.build(
        release, maps.lock_of(release), today, kept.values(), packages, of_backends(packages)
    )
    building.write(path, made)
    print(f"{path}: {len(made.cells)} cells, {len(made.functions)} functions, {path.stat().st_size:,} bytes")
    pages.update(["reach"])


def is_wrong(record: building.ReachRecord, release: str) -> bool:
    """Return whether a cell is not right on a release: as it was recorded, or as decisions about its goldens say."""
    about = decisions(record.source, release).about
    return record.is_wrong or any(about(what, record.cell) for what in (FAILURE, KNOWN))


@functools.cache
def decisions(source: str, release: str) -> Decisions:
    """Return the decisions of a release about the cells of a zoo."""
    return Decisions.of_root(LISTS.get(source, config.load().goldens), release)


def kept_records(path: Path, toolchain: Toolchain) -> Iterator[building.ReachRecord]:
    """Yield the records of an existing map that is of this environment."""
    if path.is_file() and (known := maps.read(path)).lock == maps.lock_of(toolchain.release.version):
        yield from building.records(known)


def there(records: Sequence[building.ReachRecord], toolchain: Toolchain) -> Iterator[building.ReachRecord]:
    """Yield the records of cells that their zoo has."""
    sources = {each.source for each in records} & {*SOURCES, calls.ARGS}
    cells = frozenset(load_cells(tuple(sorted(sources)), toolchain.release))
    yield from (each for each in records if each.source in sources and each.cell in cells)


def of_backends(packages: Path) -> Iterator[str]:
    """Yield the files of the backends that mutants are drawn from: what no cell reaches of them counts too."""
    for name in drawing.files(packages / "executorch"):
        if name.startswith(BACKENDS):
            yield f"executorch/{name}"
