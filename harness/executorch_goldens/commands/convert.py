"""``goldens convert``: brings a root of goldens that an older version wrote up to date."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.files import untrusted
from executorch_goldens.goldens import converting, older
from executorch_goldens.judging.updating import require_a_person
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share

#: Conversions, in this order: each does it whole or not at all, and returns what it did, or nothing. It takes the
#: root and, where it is the repository's own, the folder of its results and its file of settings.
STEPS: tuple[Callable[[Path, Path | None, Path | None], Iterable[str]], ...] = (
    lambda root, *_: map(str, converting.convert(root)),
    older.convert,
)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        description="Bring goldens that an older version of this project wrote to the form of this one: nothing is "
        "exported, and no golden's content changes. Where nothing is older, nothing is done.",
    )
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert the repository's root, or the one that is named, and print what was done."""
    require_a_person(True, "convert")
    file, table = config.nearest()
    # Settings of an older version are converted, too.
    repository = config.parse(file, {key: value for key, value in table.items() if key != "budgets"})
    root = (arguments.goldens or repository.goldens).resolve()
    own = (
        (repository.sweeps, file if table else None) if root == repository.goldens.resolve() else (None, None)
    )
    lines = [line for step in STEPS for line in step(root, *own)]
    print(untrusted.escape_controls("\n".join(lines) or f"{root}: nothing is older"))
    return SAME
