"""``python -m lab portable``: whether goldens depend on the machine: everything exported as on several, and compared.

``python -m lab portable`` exports the cells of the installed release once on each of `machines` and compares what
would be recorded, text by text, with the golden, or with the first of them where there is none. The zoo's weights,
inputs and observers are made for this; the same models as anyone would write them (tests/support/zoo_naive.py) are not.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Artifact, Cell, Outcome
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import equality, golden, rendering
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import Record
from executorch_goldens.running.selection import load_cells, select
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import Machine, Settings, cores
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.zoo.variations import variations

#: Another place on earth. Every Linux has the C.UTF-8 locale; where Turkish is missing, libc falls back to C.
ELSEWHERE = {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Pacific/Chatham", "USER": "somebody"}


def machines(copy: Path) -> dict[str, Machine]:
    """Return the machines by a descriptive name.

    Goldens are made with pinned kernels: torch's plainest, one thread, no oneDNN. The first machine has them as well,
    in another place; the others have whatever kernels their CPU has, so that the goldens do not rest on the pinning.

    Parameters
    ----------
    copy
        A second checkout of the same sources, with a ``home`` and a ``tmp`` beside it.
    """
    elsewhere = {**ELSEWHERE, "HOME": str(copy.parent / "home"), "TMPDIR": str(copy.parent / "tmp")}
    return {
        "pinned, elsewhere": Machine(environment=elsewhere, root=copy, paths=(copy,)),
        "default, 2 threads, oneDNN": Machine("default", 2, onednn=True),
        "avx2, 1 thread, oneDNN, elsewhere": Machine(
            "avx2", 1, onednn=True, environment=elsewhere, root=copy, paths=(copy,)
        ),
        "native, 2 threads, oneDNN": Machine("", 2, onednn=True),
    }


def copy_sources(models: Sequence[str], copy: Path) -> None:
    """Copy the imports of the exports into `copy`: the harness and the packages, or files, of `models`.

    Modules that a zoo imports from other packages of its repository are imported from there.
    """
    for name in dict.fromkeys(("executorch_goldens", *(module.partition(".")[0] for module in models))):
        found = importlib.util.find_spec(name)
        assert found is not None, "its cases have been loaded"
        for folder in found.submodule_search_locations or ():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(folder, copy / name, ignore=ignored, dirs_exist_ok=True)
        if not found.submodule_search_locations and found.origin is not None:
            copy.mkdir(parents=True, exist_ok=True)
            shutil.copy(found.origin, copy)


def chosen(known: dict[str, Machine], patterns: Sequence[str] | None) -> dict[str, Machine]:
    """Return the machines whose names match some pattern, all for none; raise UsageError where none match."""
    found = {
        name: machine
        for name, machine in known.items()
        if not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }
    if not found:
        raise UsageError(f"--machine {' '.join(patterns or ())}: there are {'; '.join(known)}")
    return found


#: Begins the facts that an export makes, run or not.
OF_EXPORTS = ("delegate", "pte", "failure", golden.LAYOUT)


def record_of(outcome: Outcome) -> Record:
    """Return the golden that an export would record."""
    if not isinstance(outcome.result, Artifact):
        return Record({}, {"casualty": outcome.result.verdict})
    return rendering.render(outcome.result, rendering.MadeWith({}, (), Numerics()))


def exported_part(record: Record, other: Record) -> Record:
    """Return the part of a golden to compare, without facts on the release and numerics: nothing runs."""
    kept = equality.compared(record, other)
    facts = {name: value for name, value in kept.facts.items() if name.startswith(OF_EXPORTS)}
    return replace(kept, facts=facts)


def differing_sections(one: Record, other: Record) -> list[str]:
    """Return the names of the sections in which two exports differ, and of the facts."""
    left, right = exported_part(one, other).texts(), exported_part(other, one).texts()
    return [name for name in {**left, **right} if left.get(name) != right.get(name)]


def exported(cells: Sequence[Cell], settings: Settings) -> Iterator[Record]:
    """Yield the golden of each cell under one variation."""
    with Sweep(cells, variations((0,)), settings) as sweep:
        for cell in cells:
            (outcome,) = sweep.outcomes(cell)
            yield record_of(outcome)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "portable",
        description="Export the installed release's cells as on several machines, and compare.",
    )
    share(parser.add_argument, "--models")
    share(parser.add_argument, "--cell")
    parser.add_argument(
        "--machine", action="append", metavar="NAME", help="only these; wildcards; repeatable"
    )
    share(parser.add_argument, "--jobs", default=cores())
    parser.add_argument(
        "--expect-differences", action="store_true", help="fail unless some cell differs (a naive zoo)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print, machine by machine, which cells differ; return 0 if none does, or with ``--expect-differences`` some."""
    environment = here()
    release = environment.release
    repository = config.load()
    models = repository.zoos(options.models)
    cells = load_cells(models, release)
    selected = select(cells, options.cell)
    cells = tuple(cell for cell in cells if cell in selected)
    settings = environment.settings(models, options.jobs, execute=False)
    places = (golden.file_of(repository.goldens / release.version, cell) for cell in cells)
    reference: list[Record | None] = [golden.read(place) for place in places]
    differing: set[Cell] = set()
    compared = sum(one is not None for one in reference)
    print(
        f"ExecuTorch {release.version}, {len(cells)} cells of {' '.join(models)}: {compared} with their goldens, "
        "the others with the first machine",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="goldens-elsewhere-") as folder:
        copy = Path(folder) / "another checkout"
        copy_sources((*repository.models, *models), copy)
        for name in ("home", "tmp"):
            (Path(folder) / name).mkdir()
        for name, machine in chosen(machines(copy), options.machine).items():
            found = list(exported(cells, replace(settings, machine=machine)))
            reference = [one or other for one, other in zip(reference, found, strict=True)]
            different = [
                (cell, files)
                for cell, one, other in zip(cells, reference, found, strict=True)
                if one is not None and (files := differing_sections(one, other))
            ]
            differing |= {cell for cell, _ in different}
            print(f"{name}: {len(different)} of {len(cells)} cells differ", flush=True)
            for cell, files in different:
                print(f"  {cell}: {', '.join(files)}", flush=True)
    print(f"{len(differing)} of {len(cells)} cells differ on some machine")
    return 0 if bool(differing) == options.expect_differences else 1
