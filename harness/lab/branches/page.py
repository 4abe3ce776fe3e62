"""Branches that exports of a release take: their tables, and harness/lab/docs/coverage/<release>-branches.md."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.settings import releases
from lab import tables
from lab.branches import FOLDERS
from lab.branches.sources import Branch
from lab.coverage.page import share
from lab.pages import Part

#: Groups of exports, in the order of the columns.
CORE, ZOO, SITUATIONS, GUESTS, DRAWN = GROUPS = ("core", "zoo", "situations", "guests", "generator")
#: The groups whose branches count as taken by a cell.
OF_CELLS = (CORE, ZOO, SITUATIONS, GUESTS)
#: Of the owners with the most branches that nothing takes, this many are listed with these.
LISTED = 20
#: Why nothing takes what is left of an owner, by its name.
WHY = Path(__file__).with_name("why.toml")
#: The sources of a release.
UPSTREAM = "https://github.com/pytorch/executorch/blob/v{release}/{file}"
#: The tables of each release.
TAKEN = Path(__file__).with_name("taken")
#: Columns of the table of branches; the last one has the groups that take one.
COLUMNS = ("file", "start", "end", "owner", "function", "raises", "taken by")
#: Columns of the table of groups: `Taken.cells` and `Taken.known`.
CELL_COLUMNS = ("exports of", "cells", "known")


@dataclass(frozen=True)
class Taken:
    """Branches that the exports of one group take.

    Attributes
    ----------
    cells, known
        How many cells have a record, and how many there are; None where there is no end of them.
    """

    cells: int
    known: int | None
    branches: Collection[Branch]


def branches_of(release: str) -> Path:
    return TAKEN / f"{release}.tsv"


def cells_of(release: str) -> Path:
    return TAKEN / f"{release}-cells.tsv"


def parts() -> Iterator[Part]:
    """Yield the page of each release whose branches were recorded."""
    for release in releases.load().releases:
        if branches_of(release).exists():
            yield Part(
                f"harness/lab/docs/coverage/{release}-branches.md", "", functools.partial(_committed, release)
            )


def _committed(release: str) -> Iterator[str]:
    return page(release, *read(release))


def texts(branches: Iterable[Branch], taken: Mapping[str, Taken]) -> tuple[str, str]:
    """Return the texts of the tables of branches and of groups."""
    rows = []
    for each in sorted(branches):
        by = " ".join(group for group in taken if each in taken[group].branches)
        raises = "raises" if each.raises else ""
        values = (each.file, each.start, each.end, each.owner, each.function, raises, by or "-")
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    counts = [
        {"exports of": group, "cells": each.cells, "known": "" if each.known is None else each.known}
        for group, each in taken.items()
    ]
    return tables.text(COLUMNS, rows), tables.text(CELL_COLUMNS, counts)


def read(release: str) -> tuple[list[Branch], dict[str, Taken]]:
    """Return the branches of a release, and those that each group takes, from the tables; may be empty."""
    branches = []
    found: dict[str, set[Branch]] = {group: set() for group in GROUPS}
    for row in tables.read(branches_of(release), COLUMNS):
        place = (row["file"], int(row["start"]), int(row["end"]))
        branch = Branch(*place, row["owner"], row["function"], bool(row["raises"]))
        branches.append(branch)
        for group in set(row["taken by"].split()) & set(GROUPS):
            found[group].add(branch)
    taken = {
        row["exports of"]: Taken(
            int(row["cells"]), int(row["known"]) if row["known"] else None, found[row["exports of"]]
        )
        for row in tables.read(cells_of(release), CELL_COLUMNS)
    }
    return branches, taken


def of_cells(release: str) -> frozenset[Branch]:
    """Return the branches that cells take, drawn models apart, as the tables say."""
    _, taken = read(release)
    return frozenset(branch for group in OF_CELLS if group in taken for branch in taken[group].branches)


def page(release: str, branches: Iterable[Branch], taken: Mapping[str, Taken]) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    branches
        All that there are; those that raise are not counted.
    taken
        By group of `GROUPS`.
    """
    counted = sorted(branch for branch in branches if not branch.raises)
    yield from (
        f"# Branches that exports of ExecuTorch {release} take",
        "",
        f'Written by `nox -s "lab({release})" -- branches --so-far --update`, from the records of that day.',
        "[Instruments](../instruments.md#branches) defines a branch. Each, with its exports:",
        f"`harness/lab/branches/taken/{release}.tsv`. Passes that neither backend imports are not counted.",
        "",
        "| exports of | cells recorded | branches taken |",
        "|---|---:|---:|",
    )
    for group, each in taken.items():
        of = "" if each.known is None else f" of {each.known}"
        yield f"| {group} | {each.cells}{of} | {share(*_within(each, counted))} |"
    every = {branch for each in taken.values() for branch in each.branches}
    yield f"| any of these | | {share(*_within(Taken(0, None, every), counted))} |"
    yield from ("", "## Owners with the most branches that no cell takes", "")
    yield from ("Lines are those of the release; `out` is where a function is left.", "")
    yield from ("| owner | branches | not taken | why | which |", "|---|---:|---:|---|---|")
    by_cells = {branch for group in OF_CELLS for branch in taken[group].branches}
    yield from _longest(release, _by_owner(counted), by_cells)
    for folder in FOLDERS:
        here = [branch for branch in counted if branch.file.startswith(f"{folder}/")]
        if here:
            yield from ("", f"## {folder}", "", f"| owner | branches | {' | '.join(taken)} | any |")
            yield f"|---|---:|{'---:|' * (len(taken) + 1)}"
            for (_, owner), owned in _by_owner(here).items():
                numbers = [len(_within(each, owned)[0]) for each in (*taken.values(), Taken(0, None, every))]
                yield f"| {owner} | {len(owned)} | {' | '.join(map(str, numbers))} |"


def _within(taken: Taken, branches: Sequence[Branch]) -> tuple[list[Branch], Sequence[Branch]]:
    return [branch for branch in branches if branch in taken.branches], branches


def _by_owner(branches: Iterable[Branch]) -> dict[tuple[str, str], list[Branch]]:
    found: dict[tuple[str, str], list[Branch]] = {}
    for branch in branches:
        found.setdefault((branch.file, branch.owner), []).append(branch)
    return found


def _longest(
    release: str, owners: Mapping[tuple[str, str], Sequence[Branch]], taken: Collection[Branch]
) -> Iterator[str]:
    why = tomllib.loads(WHY.read_text(encoding="utf-8"))
    left = {owner: [each for each in owned if each not in taken] for owner, owned in owners.items()}
    for file, owner in sorted(left, key=lambda key: (-len(left[key]), key))[:LISTED]:
        missing = left[file, owner]
        if missing:
            which = ", ".join(_named(missing))
            count = len(owners[file, owner])
            link = UPSTREAM.format(release=release, file=file)
            yield f"| [{owner}]({link}) | {count} | {len(missing)} | {why.get(owner, 'not known')} | {which} |"


def _named(branches: Iterable[Branch]) -> Iterator[str]:
    """Yield the names of branches, those of a function after its name."""
    function = ""
    for branch in branches:
        head = "" if branch.function == function else f"`{branch.function.rpartition('.')[2]}` "
        function = branch.function
        yield f"{head}{branch.start}→{'out' if branch.end < 0 else branch.end}"
