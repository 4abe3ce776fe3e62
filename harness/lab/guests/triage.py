"""Results of guests, from the lists of what is known: how many cells are right, and why the others are not.

The `why` of an entry says it: a finding, a thread of upstream's tracker, or a limit in words. What has none is a
finding that nobody has looked into, or a false alarm of ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from executorch_goldens.goldens.decisions import Decision, Decisions
from lab import known, markdown
from lab.guests import ZOOS, listing
from lab.pages import Part

#: Verdicts in the table of cells; others share a column.
NAMED = ("failed", "corrupt", "imprecise", "unstable")
#: Unexplained cells.
UNEXPLAINED = "not looked into"


def recorded(folder: Path = known.FOLDER) -> Iterator[tuple[dict[str, str], list[Decision]]]:
    """Yield what whole runs of guest zoos exported, a zoo and release each, and what is known of each wrong cell."""
    for (zoo, version), row in known.tried(folder).items():
        if zoo in ZOOS:
            yield row, [*Decisions.of_root(folder / zoo, version).defects.values()]


def parts() -> Iterator[Part]:
    """Yield the tables of harness/lab/docs/guests.md."""
    yield Part("harness/lab/docs/guests.md", "verdicts", tables)


def tables(folder: Path = known.FOLDER) -> Iterator[str]:
    """Yield the lines of the tables of harness/lab/docs/guests.md: cells, their defects, too large ones."""
    groups: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    yield from markdown.head(("zoo", "release", "cells", "right", *NAMED, "other", UNEXPLAINED))
    for row, wrong in recorded(folder):
        counts = Counter(each.verdict if each.verdict in NAMED else "other" for each in wrong)
        numbers = (*(counts[name] for name in (*NAMED, "other")), sum(not each.why for each in wrong))
        yield markdown.row(
            (*(row[name] for name in ("zoo", "release", "cells", "right")), *map(str, numbers))
        )
        for each in wrong:
            groups[each.verdict, each.why or UNEXPLAINED, row["zoo"]][row["release"]] += 1
    yield ""
    yield from markdown.head(("verdict", "why", "zoo", "cells by release"))
    for key, counts in sorted(groups.items(), key=lambda item: (-item[1].total(), item[0])):
        yield markdown.row((*key, ", ".join(f"{version}: {counts[version]}" for version in sorted(counts))))
    yield ""
    yield from markdown.head(("zoo", "in no core", "because of"))
    for zoo, patterns in listing.large().items():
        for pattern, reason in patterns.items():
            yield markdown.row((zoo, f"`{pattern}`", reason))
