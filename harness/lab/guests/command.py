"""``python -m lab guests``: the listings of the guest zoos, against the tests of the release that is installed."""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.files import durable
from executorch_goldens.settings import releases
from executorch_goldens.toolchains import handing
from executorch_goldens.toolchains.toolchain import here
from lab import REPOSITORY
from lab.guests import ZOOS, layer, listing

#: Lines of a difference that are shown.
SHOWN = 40


def add_to(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "guests",
        description="Run ExecuTorch's own tests up to the point where they pass on their models, and compare these "
        "models with the listings in harness/lab/guests/listings.",
    )
    parser.add_argument("--zoo", action="append", choices=tuple(ZOOS), help="only this one; repeatable")
    parser.add_argument("--update", action="store_true", help="write the listings")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare or update; return the exit code."""
    release = here().release.version
    matrix = tuple(releases.load().releases)
    code = SAME
    for name in arguments.zoo or ZOOS:
        python = layer.python_of(release) if ZOOS[name].layered else None
        if python is not None and handing.is_needed(python):
            code = max(code, _in_layer(python, name, arguments.update))
            continue
        from lab.guests.finding import listing_of

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


def _in_layer(python: Path, zoo: str, update: bool) -> int:
    """Compare or update the listing of one zoo in the Python of a layer; return the exit code."""
    words = ["guests", "--zoo", zoo, *(["--update"] if update else [])]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "harness")}
    return subprocess.run([python, "-m", "lab", *words], env=environment, check=False).returncode
