"""The command ``guests``: compare the listings of the guest zoos with the tests of the release that is installed.

With ``--verdicts``: what their goldens show.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import Any

from executorch_goldens import releases
from executorch_goldens.cli import DIFFERENT, SAME, root_of
from executorch_goldens.files import durable
from executorch_goldens.running.selection import Environment
from executorch_goldens.settings.arguments import share
from lab.guests import ZOOS, listing, triage

#: Lines of a difference that are shown.
SHOWN = 40


def add_to(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "guests",
        description="Run the tests that ExecuTorch ships up to where they hand their models over, and compare what "
        "they hand over with the listings in harness/lab/guests/listings.",
    )
    parser.add_argument("--zoo", action="append", choices=tuple(ZOOS), help="only this one; repeatable")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--update", action="store_true", help="write the listings")
    chosen.add_argument(
        "--verdicts",
        action="store_true",
        help="print what the goldens of the guest zoos show, as the tables of docs/guests.md, and compare nothing",
    )
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, update, or print; return the exit code."""
    if arguments.verdicts:
        print(*triage.tables(root_of(arguments)), sep="\n")
        return SAME
    from lab.guests.finding import listing_of

    release = Environment.of().release.version
    matrix = tuple(releases.load().releases)
    code = SAME
    for name in arguments.zoo or ZOOS:
        committed = listing.read(name)
        made = committed.without(release).joined(listing_of(ZOOS[name], release), matrix)
        cases = sum(release in entry.releases for entry in made.entries)
        omitted = sum(release in left.releases for left in made.omitted)
        print(f"{name} on ExecuTorch {release}: {cases} cases; {omitted} tests are left out")
        if made.text() == committed.text():
            continue
        if arguments.update:
            durable.replace(listing.path_of(name), made.text())
            continue
        code = DIFFERENT
        lines = difflib.unified_diff(
            committed.text().splitlines(),
            made.text().splitlines(),
            "committed",
            "installed",
            lineterm="",
            n=0,
        )
        sys.stdout.writelines(f"  {line}\n" for line in list(lines)[:SHOWN])
        print(f"  write it by: {listing.UPDATE} --zoo {name}")
    return code
