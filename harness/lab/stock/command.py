"""``python -m lab stock TOOLCHAIN ...``: what patches correct, on every release, patches off and on.

It drives the exports of each release's environment from one interpreter and prints
one table: the upstream issues, compared with what releases.toml declares, and the findings that a patch corrects.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from executorch_goldens import patches, plugins
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import Machine, Settings, cores
from executorch_goldens.toolchains.toolchain import Fit, Toolchain
from executorch_goldens.zoo.variations import named
from lab import REPOSITORY
from lab.stock.issues import CORRECTED, HASH_SEEDS, ISSUES, Finding, rows, shown
from lab.toolchains import all_of

#: The rows of the table, with what each is about: the issues by number, the findings by name.
TITLES = {
    **{f"#{issue.number}": issue.title for issue in ISSUES},
    **{name: patches.PATCHES[name].summary for name in CORRECTED},
}

#: States of a release, by row.
States = dict[str, Finding]


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "stock",
        description="Export the cases of upstream issues and of findings that a patch corrects, patches off and on, "
        "and compare with releases.toml.",
    )
    parser.add_argument(
        "toolchains", nargs="*", metavar="TOOLCHAIN", help="releases and others (default: every release)"
    )
    parser.add_argument("--variations", default=HASH_SEEDS, help="default: %(default)s")
    share(parser.add_argument, "--jobs", default=cores())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table and the facts; return 0 if every cell of the table is as declared, else 1."""
    seeds = named(options.variations)
    columns: dict[str, tuple[States, States]] = {}
    surprises: list[str] = []
    environments = all_of(options.toolchains)
    spared = {version: fitting_shortcuts(environment) for version, environment in environments.items()}
    for version, environment in environments.items():
        release = environment.release
        settings = environment.settings(
            config.load().zoos(None),
            options.jobs,
            patches=(),
            shortcuts=spared[version],
            machine=Machine(paths=(REPOSITORY, REPOSITORY / "harness")),
        )
        off, on = states(settings, release, seeds)
        columns[version] = off, on
        surprises += list(differences(release, off, on))
        print(f"ExecuTorch {version}")
        for row in off:
            print(f"  {row} {TITLES[row]}")
            print(f"    patches off: {off[row].state}")
            for fact in off[row].facts:
                print(f"      {fact}")
            print(f"    patches on:  {on[row].state}")
            for fact in on[row].facts:
                print(f"      {fact}")
        sys.stdout.flush()
    print("\n".join(table(columns)))
    for surprise in surprises:
        print(surprise)
    return DIFFERENT if surprises else SAME


def fitting_shortcuts(toolchain: Toolchain) -> dict[str, str]:
    """Return the shortcuts that fit a toolchain, and say which are left out.

    Of a release of the matrix it is verified as well: a table may be there before the digests are.

    Raises
    ------
    UsageError
        For patches that do not fit; the message names all of them.
    """
    release = toolchain.release
    wanted = patches.select("auto", release.patches)
    fit = Fit.verify(replace(toolchain, is_declared=False), wanted, shortcuts := plugins.shortcuts())
    unfit = [f"{name}: {why}" for name, why in fit.patches.items() if why]
    if unfit:
        raise UsageError(
            f"{toolchain.name}: {len(unfit)} patches do not fit:\n  "
            + "\n  ".join(unfit)
            + "\nReview the functions "
            "that they replace, and record their digests in the patches' modules. This prints them:\n  "
            f"PYTHONPATH=harness {toolchain.python} -m executorch_goldens.patches"
        )
    return {name: shortcuts[name] for name in fit.those("shortcut", fit.shortcuts)}


def states(settings: Settings, release: releases.Release, seeds: Sequence[int]) -> tuple[States, States]:
    """Return the state of each issue and finding in a release as it was published, and with the patches declared."""
    groups = rows(load_zoo(settings.models).values(), release)
    patched = replace(settings, patches=patches.select("auto", release.patches))
    return shown(groups, settings, seeds), shown(groups, patched, seeds)


def differences(release: releases.Release, off: States, on: States) -> Iterator[str]:
    """Yield a line for each row whose state is not the declared one, in either direction."""
    for issue in ISSUES:
        # Of a toolchain that the matrix lacks nothing is declared.
        found = off[f"#{issue.number}"].state
        declared = release.issues.get(issue.number, found)
        if found != declared:
            yield (
                f"NOT AS DECLARED: #{issue.number} on {release.version} without patches is {found!r}; releases.toml "
                f'says {declared!r}. Look at it, then correct [releases."{release.version}"].'
            )
    for name in CORRECTED:
        if name in off and off[name].state == "fixed":
            yield (
                f"NOT AS DECLARED: {name} on {release.version} is 'fixed' without its patch. Look at it, then correct "
                f'findings/findings.toml and `patches` of [releases."{release.version}"].'
            )
    for row, shows in on.items():
        # Of a toolchain that the matrix lacks no patch is declared.
        if shows.state != "fixed" and release.issues:
            yield f"NOT FIXED: {row} on {release.version} is {shows.state!r} with patches on."


def table(columns: Mapping[str, tuple[States, States]]) -> Iterator[str]:
    """Yield the table of issues and findings by release: ``patches off -> patches on``, or ``-`` where none shows."""
    width = max(len(row) for row in TITLES) + 2
    yield f"{'':<{width}}" + "".join(f"{version:<18}" for version in columns).rstrip()
    for row in TITLES:
        cells = [
            f"{off[row].state} -> {on[row].state}" if row in off else "-" for off, on in columns.values()
        ]
        yield (f"{row:<{width}}" + "".join(f"{cell:<18}" for cell in cells)).rstrip()
