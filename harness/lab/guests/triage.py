"""Results of guests, from their goldens alone: how many cells are right, and why the others are not.

The `why` of a decision says it: a finding, a thread of upstream's tracker, or a limit in words. What has none is a
finding that nobody has looked into, or a false alarm of ours.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from executorch_goldens.diff.drift import Drift
from executorch_goldens.goldens.decisions import FAILURE, Decisions
from executorch_goldens.settings import releases
from lab import GOLDENS, markdown
from lab.compact import goldens
from lab.guests import ZOOS, listing
from lab.pages import Part

#: Verdict of a golden that is a failure.
FAILED = "failed"
#: Verdicts in the table of cells; others share a column.
NAMED = ("corrupt", "imprecise", "unstable")
#: Unexplained cells.
UNEXPLAINED = "not looked into"


class Wrong(NamedTuple):
    """A cell of a guest zoo that is not right, and why: of its decision, in Markdown."""

    cell: str
    verdict: str
    why: str


def recorded(root: Path) -> Iterator[tuple[str, str, int, list[Wrong]]]:
    """Yield zoo, release, number of right cells, and the others, for the results under a root of goldens."""
    for zoo in ZOOS.values():
        for version in releases.load().releases:
            folder = root / zoo.folder / version
            decided = Decisions.of_root(folder.parent, version)
            wrong = [
                Wrong(cell, defect.verdict, defect.why or UNEXPLAINED)
                for cell, defect in decided.defects.items()
            ]
            right = 0
            for cell in goldens.recorded(folder):
                record = goldens.read(folder, cell)
                if record is None or not record.fails:
                    right += 1
                    continue
                whys = (
                    each.why for each in decided.about(FAILURE, cell) if each.why and each.expects(record)
                )
                wrong.append(Wrong(str(cell), FAILED, next(whys, UNEXPLAINED)))
            if right or wrong:
                yield zoo.name, version, right, wrong


def parts() -> Iterator[Part]:
    """Yield the tables of harness/lab/docs/guests.md."""
    yield Part("harness/lab/docs/guests.md", "verdicts", lambda: tables(GOLDENS))


def tables(root: Path) -> Iterator[str]:
    """Yield the lines of the tables of harness/lab/docs/guests.md: cells, their defects, drift, too large ones."""
    found = list(recorded(root))
    columns = ("zoo", "release", "cells", "right", FAILED, *NAMED, "other", UNEXPLAINED)
    yield from markdown.head(columns)
    for zoo, version, right, wrong in found:
        counts = Counter(each.verdict if each.verdict in (FAILED, *NAMED) else "other" for each in wrong)
        left = sum(each.why == UNEXPLAINED for each in wrong)
        numbers = (right + len(wrong), right, *(counts[name] for name in (FAILED, *NAMED, "other")), left)
        yield markdown.row((zoo, version, *map(str, numbers)))
    yield ""
    yield from markdown.head(("verdict", "why", "zoo", "cells by release"))
    groups: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for zoo, version, _, wrong in found:
        for each in wrong:
            groups[each.verdict, each.why, zoo][version] += 1
    for key, counts in sorted(groups.items(), key=lambda item: (-item[1].total(), item[0])):
        yield markdown.row((*key, ", ".join(f"{version}: {counts[version]}" for version in sorted(counts))))
    yield ""
    yield from markdown.head(
        ("zoo", "from", "to", "in both", "same", "now wrong", "now right", "delegates lost")
    )
    for (zoo, before, *_), (other, after, *_) in itertools.pairwise(found):
        if zoo == other:
            yield markdown.row(
                (zoo, before, after, *map(str, _drift(root / ZOOS[zoo].folder, before, after)))
            )

    yield ""
    yield from markdown.head(("zoo", "in no core", "because of"))
    for zoo, patterns in listing.large().items():
        for pattern, reason in patterns.items():
            yield markdown.row((zoo, f"`{pattern}`", reason))


def _drift(root: Path, before: str, after: str) -> Iterator[int]:
    """Yield how many cells two releases have in common, and how many of these are the same, or not in some way."""
    drift = Drift.from_inventories(
        *((version, goldens.readings(root / version, version)) for version in (before, after))
    )
    yield from (len(drift.common), len(drift.same))
    for kind in ("fails", "lowers", "gone"):
        yield sum(len(entry.cells) for entry in drift.entries if entry.kind == kind)
