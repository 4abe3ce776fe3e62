"""``python -m lab carried REPOSITORY``: up to which commit of main the compiled parts of a release carry its Python.

The Python of a commit is laid over the release, and cells of the release's core are lowered once each, without patches.
The release carries the commit if at least `SHARE` of the cells that lower at the branch point lower there. Commits of
main, first parents only, are bisected: with the cheapest cell of each target, and where that ends with the core.
Results are kept in ``build/carried``, a line a commit, so that a session that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.cli import SAME
from executorch_goldens.errors import HarnessError, UsageError
from executorch_goldens.files import durable
from executorch_goldens.goldens import golden
from executorch_goldens.judging.verdict import failure_of
from executorch_goldens.running import core
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import cores
from executorch_goldens.sweep import seconds
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.toolchains import carrying, sources
from executorch_goldens.toolchains.carrying import Carried, Commit
from executorch_goldens.toolchains.environments import Environments, python_of
from executorch_goldens.toolchains.naming import Sources
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens.words.findings import failing
from executorch_goldens.zoo.variations import variations
from lab import markdown, pages
from lab.mutants.commits import UPSTREAM, git
from lab.mutants.recall import results

#: Part of the cells that lower at the branch point, which lower at every commit that is carried.
SHARE = 0.95
KEPT = Path("build/carried")
HEAD = "# Commits of main whose Python each release carries. Written by: nox -s lab -- carried REPOSITORY --update\n\n"
COLUMNS = (
    "release",
    "branched off main at",
    "carries main to",
    "but not",
    "commits",
    "cells",
    "what fails there",
)


class Lowering:
    """What a release lowers with the Python of commits of main; what was tried is not tried again."""

    def __init__(self, version: str, options: argparse.Namespace) -> None:
        self.version, self.options, self.repository = version, options, options.repository.resolve()
        self.kept = KEPT / f"{version}.jsonl"
        self.below = Toolchain.from_name(version, config.load())
        root = config.load().goldens / version
        load_cells(config.load().zoos(None), self.below.release)
        goldens = {cell: golden.read(golden.file_of(root, cell)) for cell in core.read(root / core.FILE)}
        self.core = [cell for cell, found in goldens.items() if found is not None and not found.fails]
        longest = seconds.committed(root).longest_first(self.core)
        self.few = [*{cell.target: cell for cell in longest}.values()]

    def failing(self, commit: str, cells: Sequence[Cell], most: float = math.inf) -> dict[str, str]:
        """Return how cells fail at a commit, "" for the release as published; of more than `most` the first ones."""
        asked = {"commit": commit, "cells": [*map(str, cells)]}
        for each in results(self.kept):
            if asked.items() <= each.items():
                return dict(each["failing"])
        started = time.monotonic()
        found = dict(self._exported(commit, cells, most))
        line = json.dumps(asked | {"failing": found, "seconds": round(time.monotonic() - started)})
        with self.kept.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        print(f"{self.version} at {commit[:12]}: {len(found)} of {len(cells)} fail", flush=True)
        return found

    def _exported(self, commit: str, cells: Sequence[Cell], most: float) -> Iterator[tuple[str, str]]:
        """Yield the cells that fail, until they are more than `most`, each with how."""
        place = below = self.below.python.parent.parent
        # Of their own: those of people are not forgotten for these.
        environments = Environments(below.parent.with_name("carried"), lambda _: None)
        try:
            if commit:
                place = sources.laid_over(environments, below, Sources(self.repository, commit))
            toolchain = Toolchain.from_name(str(python_of(place)), config.load())
            plain: dict[str, Any] = {"patches": (), "shortcuts": {}, "execute": False}
            settings = toolchain.settings(config.load().zoos(None), self.options.jobs, **plain)
            fail = 0
            with Sweep(cells, variations((0,)), settings) as sweep:
                for cell in cells:
                    if why := how(*sweep.outcomes(cell)):
                        yield str(cell), why
                        fail += 1
                    if fail > most:
                        return
        except HarnessError as error:
            last = re.sub(r"\S*/(bin/python|site-packages/)", "", str(error).splitlines()[-1])
            yield from ((str(cell), last) for cell in cells)
        finally:
            if place != below:
                environments.remove(place)

    def carried(self) -> Carried:
        """Return how far the release carries main: on from its branch point, or back from the end of main."""
        tip, every = self.options.main, [*releases.load().releases]
        try:
            base = git(self.repository, "merge-base", f"v{self.version}", tip).strip()
            main = [*self._commits(f"{base}^!"), *self._commits(f"{base}..{tip}")[::-1]]
        except UsageError:
            # It branched off later: what was published takes the place of the branch point.
            main = [Commit("", ""), *self._commits(f"v{every[every.index(self.version) - 1]}..{tip}")]
        fails: dict[int, Mapping[str, str]] = {}

        def is_carried(place: int, cells: Sequence[Cell]) -> bool:
            at_base = self.failing(main[0].commit, cells)
            wanted = [cell for cell in cells if str(cell) not in at_base]
            # Of few cells one may fail for a reason of its own.
            most = max(1.0, (1 - SHARE) * len(wanted))
            fails[place] = self.failing(main[place].commit, wanted, most)
            return len(fails[place]) <= most

        at = [place for place, each in enumerate(main) if each.commit == self.options.at]
        near = [place + step for place in at for step in (0, -1, 1)]
        end = first_beyond(len(main), lambda place: is_carried(place, self.few), near)
        cells = self.few if self.options.few else self.core
        end = first_beyond(len(main), lambda place: is_carried(place, cells), [end - 1, end])
        return Carried(
            since=main[0] if main[0].commit else None,
            until=main[end - 1],
            commits=end - 1,
            cells=len(cells) - len(self.failing(main[0].commit, cells)),
            beyond=main[end] if end < len(main) else None,
            fails=Counter(fails[end].values()).most_common(1)[0][0] if end < len(main) else "",
        )

    def _commits(self, span: str) -> list[Commit]:
        """Return the commits of main in a span, the newest first."""
        listed = git(self.repository, "log", "--first-parent", "--format=%H %cs", span)
        return [Commit(*line.split()) for line in listed.splitlines()]


def first_beyond(number: int, is_carried: Callable[[int], bool], places: Sequence[int] = ()) -> int:
    """Return the first of `number` places that is not carried, or `number`, where the first of all is.

    Parameters
    ----------
    places
        Places that are tried before the last one, and that before others.
    """
    low, high, untried = 0, number, [*places, number - 1]
    while high - low > 1:
        place = untried.pop(0) if untried else (low + high) // 2
        if low < place < high:
            low, high = (place, high) if is_carried(place) else (low, place)
    return high


def how(outcome: Outcome) -> str:
    """Return in one line how an export fails; empty where it lowers."""
    if not isinstance(outcome.result, Artifact):
        return outcome.result.verdict
    made = outcome.result.result
    return failing(failure_of(made)) if isinstance(made, Failure) else ""


def lines() -> Iterator[str]:
    """Yield the table of releases."""
    yield from markdown.head(COLUMNS)
    for version, each in carrying.load().items():
        ends = (
            f"[{one}]({UPSTREAM}/{one.commit})" if one else "-"
            for one in (each.since, each.until, each.beyond)
        )
        yield markdown.row((version, *ends, str(each.commits), str(each.cells), each.fails or "-"))


def parts() -> Iterator[pages.Part]:
    """Yield the part of docs/drift.md that is made of this."""
    yield pages.Part("harness/lab/docs/drift.md", "carried", lines)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("carried", description=__doc__)
    parser.add_argument(
        "repository", type=Path, help="a clone of pytorch/executorch with its tags, bare or not"
    )
    parser.add_argument("--main", default="main", help="default: %(default)s")
    parser.add_argument(
        "--at", metavar="COMMIT", help="where it may end: tried first, with the commits beside it"
    )
    parser.add_argument(
        "--few", action="store_true", help="leave out the core: the table says of how many cells it is"
    )
    parser.add_argument("--release", action="append", help="repeatable (default: all, the newest first)")
    parser.add_argument("--update", action="store_true", help="write the results, and docs/drift.md")
    share(parser.add_argument, "--jobs", default=cores())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure each release, and print what it carries."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for version in options.release or reversed(releases.load().releases):
        found = Lowering(version, options).carried()
        print(f"{version}: {msgspec.json.encode(found).decode()}", flush=True)
        if options.update:
            every = {**carrying.load(), version: found}
            known = {
                each: msgspec.to_builtins(every[each]) for each in releases.load().releases if each in every
            }
            durable.replace(carrying.FILE, HEAD + tomlkit.dumps({"releases": known}))
            carrying.load.cache_clear()
            pages.update(["carried"])
    return SAME
