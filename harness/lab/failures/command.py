"""``python -m lab failures``: which cells fail to lower, on which release and why, from the goldens alone."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.causes import Cause, cause
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.record import FAILURE
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share
from lab import GOLDENS, pages
from lab.pages import Part


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "failures",
        description="Print a Markdown table of the goldens that are failures, and of the defects that decisions.toml "
        "declares: a line per cause.",
    )
    share(parser.add_argument, "--goldens")
    parser.add_argument(
        "--update",
        action="store_true",
        help="write it into harness/lab/docs/failures.md, from this project's goldens",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table, or write the page; raise CommandError where there are no goldens."""
    if options.update:
        pages.update(["failures"])
    else:
        repository = config.load()
        goldens = options.goldens or repository.goldens
        if not goldens.is_dir():
            raise CommandError(f"{goldens} is not a folder: name a root of goldens with --goldens")
        print(*table(goldens), sep="\n")
    return SAME


def parts() -> Iterator[Part]:
    """Yield the table of harness/lab/docs/failures.md."""
    yield Part("harness/lab/docs/failures.md", "failures", lambda: table(GOLDENS))


def table(root: Path) -> Iterator[str]:
    """Yield the Markdown table of the failures under `root`, most frequent cause first."""
    found: dict[Cause, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for version in releases.load().releases:
        for cell in golden.recorded(root / version):
            record = golden.read(golden.file_of(root / version, cell))
            if record is not None and record.fails:
                found[cause(record.sections[FAILURE])][str(cell)].append(version)
        for name, defect in Decisions.of_root(root, version).defects.items():
            found[Cause(f"known: {defect.verdict}", defect.reason)][name].append(version)
    yield "| where | why | cells and releases |"
    yield "|---|---|---|"
    for found_cause in sorted(found, key=lambda key: (-sum(map(len, found[key].values())), key)):
        cells = "; ".join(
            f"{cell} ({', '.join(versions)})" for cell, versions in sorted(found[found_cause].items())
        )
        yield f"| {found_cause.where} | {found_cause.error} | {cells} |"
