"""What exports of a release take of its branches, as a page and as lines for programs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.branches import FOLDERS
from lab.branches.sources import Branch
from lab.coverage.visits import TABLES, share

#: What exports are of, in the order of the columns.
CORE, ZOO, SITUATIONS, GUESTS, DRAWN = GROUPS = ("core", "zoo", "situations", "guests", "generator")
#: The groups of which a branch counts as taken by a cell.
OF_CELLS = (CORE, ZOO, SITUATIONS, GUESTS)
#: Of the owners with the most branches that nothing takes, this many are listed with these.
LISTED = 20
#: Why nothing takes what is left of an owner, by its name.
WHY = Path(__file__).with_name("why.toml")
#: The sources of a release.
UPSTREAM = "https://github.com/pytorch/executorch/blob/v{release}/{file}"
COLUMNS = ("file", "start", "end", "owner", "function", "raises", "taken by")


@dataclass(frozen=True)
class Taken:
    """What the exports of one group take.

    Attributes
    ----------
    cells, known
        How many cells have a record, and how many there are; None where there is no end of them.
    """

    cells: int
    known: int | None
    branches: Collection[Branch]


def page_of(release: str) -> Path:
    return TABLES / f"{release}-branches.md"


def lines_of(release: str) -> Path:
    return TABLES / f"{release}-branches.tsv"


def lines(branches: Iterable[Branch], taken: Mapping[str, Taken]) -> Iterator[str]:
    """Yield a head, then a line for each branch: its fields, and the groups that take it, apart by tabs."""
    yield "\t".join(COLUMNS)
    for each in sorted(branches):
        by = " ".join(group for group in taken if each in taken[group].branches)
        raises = "raises" if each.raises else ""
        yield "\t".join(
            (each.file, str(each.start), str(each.end), each.owner, each.function, raises, by or "-")
        )


def read(text: str) -> frozenset[Branch]:
    """Return the branches of `lines` that cells take, drawn models apart."""
    return frozenset(branch for branch, groups in _read(text) if not groups.isdisjoint(OF_CELLS))


def _read(text: str) -> Iterator[tuple[Branch, set[str]]]:
    """Yield each branch of `lines` with the groups that take it."""
    for line in text.splitlines()[1:]:
        file, start, end, owner, function, raises, by = line.split("\t")
        groups = set(by.split()) & set(GROUPS)
        yield Branch(file, int(start), int(end), owner, function, bool(raises)), groups


def written(pages: str, each: str) -> dict[str, Taken]:
    """Return what the texts of a page and of its `lines` say of the groups that have cells."""
    taken: dict[str, set[Branch]] = {group: set() for group in GROUPS}
    for branch, groups in _read(each):
        for group in groups:
            taken[group].add(branch)
    counts = {
        group: (int(cells), int(known) if known else None)
        for group, cells, known in re.findall(
            r"^\| (\w+) \| (\d+)(?: of (\d+))? \| \d+ of ", pages, re.MULTILINE
        )
    }
    return {
        group: Taken(*counts[group], found) for group, found in taken.items() if counts.get(group, (0,))[0]
    }


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
        f'Written by `nox -s "lab({release})" -- branches --so-far --update`, from what was recorded by then. What a',
        "branch is, and how it is recorded: [maintaining](../maintaining.md#branches). Each one, with what takes it:",
        f"[{lines_of(release).name}]({lines_of(release).name}). Passes that neither backend imports are not counted.",
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
    of_cells = {branch for group in OF_CELLS for branch in taken[group].branches}
    yield from _longest(release, _by_owner(counted), of_cells)
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
    """Yield what branches are called, those of a function behind its name."""
    function = ""
    for branch in branches:
        head = "" if branch.function == function else f"`{branch.function.rpartition('.')[2]}` "
        function = branch.function
        yield f"{head}{branch.start}→{'out' if branch.end < 0 else branch.end}"
