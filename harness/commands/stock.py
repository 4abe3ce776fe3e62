"""``python -m harness stock RELEASE=PYTHON ...``: the upstream reports' cases on every release, patches off and on.

It is what ``nox -s stock`` runs: it drives the exports of each release's environment from one interpreter, prints one
table, and compares it with what releases.toml declares.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import config, patches, releases
from harness.arguments import share
from harness.cli import DIFFERENT, SAME
from harness.reports import HASH_SEEDS, REPORTS, Finding, findings
from harness.selection import EXPORT_TIMEOUT, Installed, find_release
from harness.sweeping.settings import Settings, cores
from harness.variations import parse_hash_seeds


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "stock",
        help="show the upstream reports on every release, patches off and on",
        description="Export the upstream reports' cases, patches off and on, and compare with releases.toml.",
    )
    parser.add_argument("environments", nargs="+", metavar="RELEASE=PYTHON")
    parser.add_argument("--hash-seeds", default=HASH_SEEDS, help="default: %(default)s")
    share(parser.add_argument, "--jobs", default=cores())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table and the facts; return 0 if every cell of the table is as declared, else 1."""
    seeds = parse_hash_seeds(options.hash_seeds)
    columns: dict[str, tuple[dict[int, Finding], dict[int, Finding]]] = {}
    surprises: list[str] = []
    for environment in options.environments:
        version, _, python = environment.partition("=")
        release = find_release(Installed.probe(Path(python)), version)
        settings = Settings(Path(python), config.load().zoos(None), (), options.jobs, EXPORT_TIMEOUT)
        off = findings(settings, seeds)
        on = findings(replace(settings, patches=patches.select("auto", release.patches)), seeds)
        columns[version] = off, on
        surprises += list(differences(release, off, on))
        print(f"ExecuTorch {version}")
        for report in REPORTS:
            print(f"  #{report.number} {report.title}")
            print(f"    patches off: {off[report.number].state}")
            for fact in off[report.number].facts:
                print(f"      {fact}")
            print(f"    patches on:  {on[report.number].state}")
            for fact in on[report.number].facts:
                print(f"      {fact}")
        sys.stdout.flush()
    print("\n".join(table(columns)))
    for surprise in surprises:
        print(surprise)
    return DIFFERENT if surprises else SAME


def differences(
    release: releases.Release, off: Mapping[int, Finding], on: Mapping[int, Finding]
) -> Iterator[str]:
    """Yield a line for each report whose state is not the declared one, in either direction."""
    for report in REPORTS:
        declared, found = release.reports[report.number], off[report.number].state
        if found != declared:
            yield (
                f"NOT AS DECLARED: #{report.number} on {release.version} without patches is {found!r}; releases.toml "
                f'says {declared!r}. Look at it, then correct [releases."{release.version}"].'
            )
        if on[report.number].state != "fixed":
            yield f"NOT FIXED: #{report.number} on {release.version} is {on[report.number].state!r} with patches on."


def table(columns: Mapping[str, tuple[Mapping[int, Finding], Mapping[int, Finding]]]) -> Iterator[str]:
    """Yield the table report x release, each cell ``patches off -> patches on``."""
    yield f"{'report':<10}" + "".join(f"{version:<18}" for version in columns)
    for report in REPORTS:
        cells = [f"{off[report.number].state} -> {on[report.number].state}" for off, on in columns.values()]
        yield f"#{report.number:<9}" + "".join(f"{cell:<18}" for cell in cells)
