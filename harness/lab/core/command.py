"""``python -m lab core``: the core of the zoo on each release, compared with the committed one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files import durable
from executorch_goldens.running import core
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.zoo import load_zoo
from lab.core import computing
from lab.coverage.visits import Reached


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "core",
        description="Compute the core of each release from its goldens and its tables of coverage; exports nothing.",
    )
    parser.add_argument("--update", action="store_true", help="write it")
    share(parser.add_argument, "--release", help="of this release alone")
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a line for each release that has goldens; return 0 if all is as committed or was written, else 1."""
    goldens = options.goldens or config.load().goldens
    versions = [options.release] if options.release else list(releases.load().releases)
    found = [version for version in versions if (goldens / version).is_dir()]
    if not found:
        raise CommandError(f"{goldens} has no goldens of {' or '.join(versions)}: name a root with --goldens")
    same = True
    for version in found:
        same = settle(goldens, version, options.update) and same
    if not same:
        print(f"accept: {core.UPDATE}")
    return SAME if same else DIFFERENT


def settle(goldens: Path, version: str, update: bool) -> bool:
    """Compare the core of a release with the committed one, or write it, and print which; return whether it is that."""
    file = goldens / version / core.FILE
    text = computed(goldens, version)
    same = file.is_file() and file.read_text(encoding="utf-8") == text
    if update and not same:
        durable.replace(file, text)
    state = "as committed" if same else "written" if update else "differs"
    print(f"{file}: {state}: {text.partition(': ')[2].partition('.')[0]}")
    return same or update


def computed(goldens: Path, version: str) -> str:
    """Return the text that the core of a release must have."""
    repository = config.load()
    models = repository.zoos(None)
    release = releases.load().release(version)
    return computing.text(
        version,
        goldens / version,
        load_cells(models, release, repository.targets),
        load_zoo(models).values(),
        Reached.read(version),
    )
