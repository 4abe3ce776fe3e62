"""``python -m harness failures``: which cells fail to lower, on which release and why, from the goldens alone."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness import golden, releases
from harness.cli import SAME, CommandError

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
#: Characters of a message that are shown.
SHOWN_MESSAGE = 110
#: Names of nodes and constants: one defect names another in every model.
NAMES = re.compile(r"(?<=name )\w+|\(\w+\)|\b\w*_\d+\w*\b")


class Cause(NamedTuple):
    """Why lowering fails, without what differs from cell to cell."""

    where: str
    error: str


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "failures",
        help="tell which cells fail to lower and why, from the goldens",
        description="Print a Markdown table of the goldens that are failures, and of the defects that releases.toml "
        "declares: a line per cause.",
    )
    prints_table(parser, table)


def prints_table(parser: argparse.ArgumentParser, table: Callable[[Path], Iterable[str]]) -> None:
    """Make `parser` one of a subcommand that prints the lines of `table`, a function of the root of the goldens."""
    parser.add_argument(
        "--goldens", type=Path, default=GOLDENS, help="root of the goldens (default: the project's)"
    )

    def run(arguments: argparse.Namespace) -> int:
        if not arguments.goldens.is_dir():
            raise CommandError(f"{arguments.goldens} is not a folder: name a root of goldens with --goldens")
        for line in table(arguments.goldens):
            print(line)
        return SAME

    parser.set_defaults(run=run)


def table(root: Path) -> Iterator[str]:
    """Yield the Markdown table of the failures under `root`, most frequent cause first."""
    found: dict[Cause, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for version, release in releases.load().releases.items():
        for cell in golden.recorded(root / version):
            texts = golden.read(golden.directory(root / version, cell))
            if texts is not None and golden.FAILURE in texts:
                found[cause(texts[golden.FAILURE])][str(cell)].append(version)
        for name, defect in release.known.items():
            found[Cause(f"known: {defect.verdict}", defect.reason)][name].append(version)
    yield "| where | why | cells and releases |"
    yield "|---|---|---|"
    for found_cause in sorted(found, key=lambda key: (-sum(map(len, found[key].values())), key)):
        cells = "; ".join(
            f"{cell} ({', '.join(versions)})" for cell, versions in sorted(found[found_cause].items())
        )
        yield f"| {found_cause.where} | {found_cause.error} | {cells} |"


def cause(text: str) -> Cause:
    """Return the cause that the text of a failure.txt states."""
    fields = dict(
        line.split(": ", 1) for line in text.splitlines() if not line.startswith(" ") and ": " in line
    )
    where = fields["stage"] if fields["pass"] == "-" else f"{fields['stage']}, {fields['pass']}"
    message = NAMES.sub("…", fields.get("message", ""))
    kind = fields["type"].rpartition(".")[2]
    shown = message if len(message) <= SHOWN_MESSAGE else message[: SHOWN_MESSAGE - 1] + "…"
    return Cause(where, f"{kind}: {shown}".replace("|", "\\|"))
