"""``python -m lab coverage``: the zoo's coverage of the installed release, compared with the committed tables."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.errors import UsageError, some
from executorch_goldens.files import durable
from executorch_goldens.running.selection import load_cells, select
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import cores
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.store import Store, default_root
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.zoo.variations import variations
from lab import pages
from lab.core.command import settle
from lab.coverage import page
from lab.coverage.visits import Coverage, Reached, cells_of, table_of


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "coverage",
        description="Export every cell once, and compare the coverage with the committed tables.",
    )
    share(
        parser.add_argument,
        "--cell",
        help="only these: prints, compares nothing; with --update, adds their coverage",
    )
    parser.add_argument(
        "--update", action="store_true", help="write the tables, the page, and the core that rests on them"
    )
    parser.add_argument(
        "--cached", action="store_true", help="take exports from the cache, and put them there"
    )
    share(parser.add_argument, "--jobs", default=cores())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export, compare with the committed tables or write them; return 0 if it is as committed, else 1."""
    environment = here()
    release = environment.release
    repository = config.load()
    models = repository.zoos(None)
    cells = load_cells(models, release)
    selected = select(cells, options.cell)
    settings = environment.settings(
        models,
        options.jobs,
        tolerances=repository.tolerances,
    )
    reuse = Reuse(Store(repository.cache_dir or default_root())) if options.cached else None
    # All cells are counted without the committed table, which a new release does not have yet.
    before = Reached.read(release.version) if options.cell and options.update else None
    if before is not None and (counted := before.counted() & {*selected}):
        raise UsageError(
            f"{some(sorted(map(str, counted)))} counted already: without --cell, all are counted again"
        )
    coverage = Coverage()
    if reuse is not None:
        reuse.open()
    wanted = [cell for cell in cells if cell in selected]
    with Sweep(wanted, variations((0,)), settings, reuse=reuse) as sweep:
        for cell in sweep.results:
            for outcome in sweep.outcomes(cell):
                coverage.add(outcome)
    if reuse is not None:
        reuse.close()
        print("\n".join(reuse.lines()), file=sys.stderr)
    reached = Reached.of(coverage, all_visitors())
    if before is not None:
        reached = before.joined(reached)
    elif options.cell:
        print(*page.lines(release.version, reached, page.reasons()), sep="\n")
        return 0
    files = (table_of(release.version), cells_of(release.version))
    found = dict(zip(files, reached.texts(), strict=True))
    if options.update:
        for path, content in found.items():
            durable.replace(path, content)
            print(f"{path}: written")
        pages.update(["coverage"])
        settle(repository.goldens, release.version, update=True)
        return 0
    same = [_is_committed(path, content) for path, content in found.items()]
    if not all(same):
        print(f'accept: nox -s "lab({release.version})" -- coverage --update')
    return 0 if all(same) else 1


def all_visitors() -> Mapping[str, Iterable[str]]:
    """Return the targets that each backend has a node visitor for.

    It imports ExecuTorch, which the process that sweeps does without until it is at its end.
    """
    # These register them.
    importlib.import_module("executorch.backends.arm.operators")
    importlib.import_module("executorch.backends.xnnpack.operators")
    from executorch_goldens.exporting.compat import visitor_classes

    return visitor_classes()


def _is_committed(path: Path, text: str) -> bool:
    """Print the lines of `text` that a committed file lacks, and return whether they are equal."""
    committed = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    difference = list(difflib.unified_diff(committed, text.splitlines(keepends=True), str(path), "now", n=0))
    sys.stdout.writelines(difference or [f"{path}: as committed\n"])
    return not difference
