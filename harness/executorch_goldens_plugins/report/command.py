"""``goldens report``: the results of runs, as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files import untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.running.counting import counts
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share

EXAMPLES = """\
examples:
  goldens report --html build/report.html
  goldens report build/merged --html build/report.html
  goldens report build/compare/1.4.1-1.5.1 --html build/report.html
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "report",
        description="Write the results of runs, of merged shards, or of a comparison as one HTML file that opens from "
        "disk: a grid of verdicts or differences, causes, a page for each cell that needs a look, and changes between "
        "releases. Exits with 1 if a cell was not checked.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "results",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="folders that hold the results of runs, or the one of a comparison (default: build/sweeps)",
    )
    parser.add_argument("--html", type=Path, required=True, metavar="FILE", help="the HTML file")
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report; raise CommandError where it cannot be written, and errors of its inputs."""
    from executorch_goldens_plugins.report import document, gathering

    repository = config.load()
    folders = arguments.results or [repository.sweeps]
    goldens = (arguments.goldens or repository.goldens).resolve()
    gathered = gathering.gather(folders, goldens, repository)
    if gathered.compared is not None and arguments.goldens is not None:
        raise CommandError("--goldens: a comparison has none; leave it out")
    document.write(arguments.html, document.document(gathered))
    verdicts = counts((found.kind, found.row.new) for found in gathered.found) if gathered.found else ""
    said = (gathered.compared.head,) if gathered.compared is not None else (gathered.unchecked, verdicts)
    print(
        f"{arguments.html}: {untrusted.escape_controls('; '.join(filter(None, said)))}; "
        f"{count(len(gathered.releases), 'release')}, "
        f"{count(len(gathered.groups), 'cause')}, {arguments.html.stat().st_size / 1e6:.2f} MB"
    )
    return DIFFERENT if gathered.unchecked else SAME
