"""Cells of sources without goldens that are red by themselves, and why: two tables of harness/lab/docs/history.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab import markdown
from lab.guests.triage import UNEXPLAINED, Explanation, Wrong, why
from lab.mutants.history.measure import Tried, latest

#: Explanations of the cells; the first that fits a cell counts.
TABLE = Path(__file__).with_name("explained.toml")


def wrong(tried: Mapping[str, Sequence[Tried]], release: str) -> list[Wrong]:
    """Return the cells that are red without any fix taken back, of results by the name of their source."""
    return [
        Wrong(source, release, each.cell, each.control, each.cause)
        for source, found in tried.items()
        for each in latest(found).values()
        if each.is_red
    ]


def lines(
    tried: Mapping[str, Sequence[Tried]], release: str, explanations: Sequence[Explanation]
) -> Iterator[str]:
    """Yield the table of the sources, then that of the explanations."""
    found = wrong(tried, release)
    yield from markdown.head(("source", "cells", "red", "causes", "causes left"))
    for source, results in tried.items():
        of_it = [each for each in found if each.zoo == source]
        left = [each for each in of_it if why(each, explanations) == UNEXPLAINED]
        counts = (len(latest(results)), len(of_it), len(_causes(of_it)), len(_causes(left)))
        yield markdown.row((source, *map(str, counts)))
    yield ""
    yield from markdown.head(("verdict", "why", "cells", "such as"))
    groups: dict[tuple[str, str], list[Wrong]] = defaultdict(list)
    for each in found:
        groups[each.verdict, why(each, explanations)].append(each)
    for (verdict, reason), members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        first = min(members, key=lambda each: (each.zoo, each.cell))
        yield markdown.row((verdict, reason, str(len(members)), f"{first.zoo}: {first.cell}"))


def _causes(found: Sequence[Wrong]) -> set[tuple[str, str]]:
    return {(each.verdict, each.reason) for each in found}
