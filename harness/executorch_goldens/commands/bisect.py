"""``goldens bisect TARGET/CASE``: which commit, or which distribution, made a cell another one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from executorch_goldens import releases
from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.toolchains.sources import is_executorch

EXAMPLES = """\
examples:
  goldens bisect tosa-int/conv --good main~20 --bad main --checkout ../executorch
  goldens bisect tosa-int/conv --good v1 --bad HEAD --checkout ../executorch -t 1.4.1
  goldens bisect tosa-int/conv --good 1.3.1 --bad 1.4.1
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "bisect",
        description="Find the change that altered a cell. Between two releases: executorch, torch, torchao or "
        "tosa-tools. Between two revisions of a checkout of ExecuTorch: the commit, by git bisect in a worktree of its "
        "own, with the checkout's Python sources laid over a release.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cell", metavar="TARGET/CASE")
    parser.add_argument("--good", required=True, metavar="REV", help="a revision, or a release, of before")
    parser.add_argument("--bad", required=True, metavar="REV", help="one of after")
    parser.add_argument(
        "--checkout", type=Path, metavar="DIR", help="of ExecuTorch (default: the working directory)"
    )
    share(
        with_short(parser.add_argument),
        "--toolchain",
        help="release that the sources replace files of (default: the newest release)",
    )
    share(parser.add_argument, "--models")
    share(parser.add_argument, "--variations", default="quick", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the result; raise CommandError."""
    from executorch_goldens.against.bisecting import Predicate, of_commits, of_releases

    words = [f"--models={module}" for module in arguments.models or ()]
    words.append(f"--variations={arguments.variations}")
    folder = (config.load().sweeps.parent / "bisect").resolve()
    predicate = Predicate(arguments.cell, words, folder)
    known = releases.load().releases
    if arguments.good in known and arguments.bad in known:
        if arguments.checkout is not None or arguments.toolchain is not None:
            raise CommandError("--checkout and --toolchain go with revisions, and not with two releases")
        lines = of_releases(predicate, arguments.good, arguments.bad, _say)
    else:
        over = Name.read(arguments.toolchain or list(known)[-1]).word
        checkout = (arguments.checkout or Path()).expanduser().resolve()
        if not checkout.is_dir():
            raise CommandError(f"--checkout {arguments.checkout} is no folder: name a checkout of ExecuTorch")
        if arguments.checkout is None and not is_executorch(checkout):
            raise CommandError(
                f"{checkout} is no checkout of ExecuTorch: name one with --checkout, for its revisions "
                f"{arguments.good} and {arguments.bad}; releases to bisect are {', '.join(known)}"
            )
        lines = of_commits(predicate, checkout, over, arguments.good, arguments.bad)
    for line in lines:
        print(line, flush=True)
    return SAME


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
