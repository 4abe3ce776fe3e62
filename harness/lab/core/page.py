"""harness/lab/docs/core.md: what the core of each release has, what it cannot have, and which cells add nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from executorch_goldens.settings import releases
from executorch_goldens_plugins.compare.reach import map as maps
from lab import GOLDENS, markdown
from lab.core.computing import superfluous
from lab.core.wanted import Source
from lab.pages import Part
from lab.reach.owners import bits

#: Characters of a line of the page.
WIDTH = 116


def parts() -> Iterator[Part]:
    """Yield the page."""
    yield Part("harness/lab/docs/core.md", "", lines)


def lines() -> Iterator[str]:
    """Yield the lines of the page."""
    sources = [
        Source.from_root(GOLDENS, release)
        for release in releases.load().releases
        if (GOLDENS / release / maps.FILE).is_file()
    ]
    yield "# Cores"
    yield ""
    yield "What the [core](../../../docs/running.md#tiers) of each release has that has a"
    yield "[map of reach](instruments.md#reach). Seconds are processor time of one export of each cell, when the map"
    yield "was recorded. Mutants and fixes are those that some cell of any source, `of any`, is known to find."
    yield ""
    yield from markdown.head(
        ("release", "cells", "seconds", "statements", "mutants killed", "of any", "fixes seen", "of any")
    )
    for source in sources:
        cells = source.committed
        kills, sees = (
            (sum(1 for having in named.values() if having & cells), len(named))
            for named in (source.mutants, source.fixes)
        )
        yield markdown.row(
            (
                *(source.known.release, str(cells.bit_count()), f"{source.seconds(cells):.1f}"),
                *(f"{source.reached(cells)}", *map(str, kills), *map(str, sees)),
            )
        )
    for source in sources:
        yield from of_release(source)


def of_release(source: Source) -> Iterator[str]:
    """Yield the part of a release."""
    yield ""
    yield f"## {source.known.release}"
    yield ""
    if unkept := source.unkept():
        yield "Seen only by cells whose golden a run does not check, or that are dear; one is named:"
        yield ""
        yield from (f"- {line}" for line in unkept)
        yield ""
    needless = superfluous(source, source.committed)
    yield f"{len(needless)} cells outside of the core add nothing to the others, no function in an unlike situation, no"
    yield f"mutant and no fix; together they take {source.seconds(bits(needless)):.0f} s:"
    yield ""
    yield from by_target(source, needless)


def by_target(source: Source, cells: Sequence[int]) -> Iterator[str]:
    """Yield a line of a list for each target, with the cases of some cells."""
    found: dict[str, list[str]] = {}
    for number in cells:
        cell = source.cell(number)
        found.setdefault(cell.target, []).append(cell.case)
    for target, cases in sorted(found.items()):
        yield from textwrap.wrap(
            f"- {target}: {', '.join(sorted(cases))}", WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )
