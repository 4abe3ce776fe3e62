"""``goldens env``: the environments of toolchains, which all repositories of a person share."""

from __future__ import annotations

import argparse
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.settings import config
from executorch_goldens.toolchains.environments import name_of
from executorch_goldens.toolchains.toolchain import Toolchain, of_person

EXAMPLES = """\
examples:
  goldens env make 1.5.1
  goldens env list
  goldens env remove 1.5.1-0123456789ab
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "env",
        description="Commands make the environment of a toolchain when they first need it. This makes one in advance "
        "and prints its Python, lists all environments, or removes unused ones.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("list", "make", "remove"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="toolchains to make, or folders to remove")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action; raise CommandError, and errors of a toolchain."""
    if arguments.action == "list":
        for name, folder in of_person().there().items():
            print(f"{name}  {name_of(folder)}  {folder}")
        return SAME
    if not arguments.names:
        raise CommandError(f"goldens env {arguments.action}: name a toolchain, e.g. 1.5.1")
    if arguments.action == "make":
        for word in arguments.names:
            print(Toolchain.from_name(word, config.load()).python)
        return SAME
    there = of_person().there()
    if unknown := [name for name in arguments.names if name not in there]:
        raise CommandError(f"no environment {unknown[0]!r}; there are {', '.join(there) or 'none'}")
    for name in arguments.names:
        of_person().remove(there[name])
        print(f"removed {there[name]}")
    return SAME
