"""``goldens drift``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from executorch_goldens.cli import SAME, CommandError
from executorch_goldens.compare.report import Drift
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share

EXAMPLES = """\
examples:
  goldens drift 1.3.1 1.4.1
  goldens drift 1.3.1 1.4.1 --json | jq '.entries[0]'
  goldens drift 1.3.1 1.4.1 --cell 'tosa-int/*'
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "drift",
        help="report what changed between two releases, from the goldens",
        description="Report what changed from release A to release B for the zoo: an entry per cause, with its cells.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", metavar="A", help="a release that has goldens")
    parser.add_argument("after", metavar="B", help="the release to compare it with")
    share(parser.add_argument, "--goldens")
    parser.add_argument("--cell", metavar="TARGET/CASE", default="*", help="only these cells; wildcards")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the drift."""
    goldens = arguments.goldens or config.load().goldens
    for version in (arguments.before, arguments.after):
        if not (goldens / version).is_dir():
            # Compiled goldens, those of further zoos and the like are of no release.
            found = sorted(path.name for path in goldens.glob("[0-9]*") if path.is_dir())
            raise CommandError(
                f"no goldens of {version!r} under {goldens}: it has {', '.join(found) or 'none'}"
            )
    drift = Drift.between(goldens, arguments.before, arguments.after, arguments.cell)
    if arguments.json:
        print(json.dumps(drift.as_json(), indent=2))
    else:
        print("\n".join(drift.markdown()))
    return SAME
