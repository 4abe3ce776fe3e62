"""The fixes taken back, and the cells that see each: tables of harness/lab/docs/history.md."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from pathlib import Path

from lab import markdown, tables
from lab.mutants import commits, recall, swaps
from lab.mutants.history import FIXES, Fix
from lab.pages import Part

PAGE = "harness/lab/docs/history.md"
#: The cells that see a fix taken back, of those that the map of its release has.
SEEN = Path(__file__).with_name("seen.tsv")
COLUMNS = ("release", "fix", "cells")
PULLS = "https://github.com/pytorch/executorch/pull"


def parts() -> Iterator[Part]:
    """Yield the parts of the page."""
    yield Part(PAGE, "by-command", recall.lines)
    yield Part(PAGE, "commits", commits.lines)
    yield Part(PAGE, "swaps", swaps.lines)
    yield Part(PAGE, "fixes", lines)


def seen(release: str) -> dict[str, list[str]]:
    """Return the cells that see each fix of a release, by its key."""
    rows = tables.read(SEEN, COLUMNS)
    return {row["fix"]: row["cells"].split() for row in rows if row["release"] == release}


def lines() -> Iterator[str]:
    """Yield a table for each area."""
    for area, fixes in itertools.groupby(FIXES, operator.attrgetter("area")):
        yield ""
        yield f"### {area}"
        yield ""
        yield from markdown.head(("fix", "release", "it corrected", "before it", "cells that see it"))
        for fix in fixes:
            name = f"[#{fix.number}]({PULLS}/{fix.number})"
            yield markdown.row((name, fix.release, fix.kind, fix.broke, _said(fix)))
    yield ""


def _said(fix: Fix) -> str:
    cells = seen(fix.release).get(fix.key, [])
    return f"{len(cells)}, such as {cells[0]}" if cells else fix.unreachable or fix.unseen or "-"
