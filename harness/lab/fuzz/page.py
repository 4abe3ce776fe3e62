"""The figures of harness/lab/docs/generator.md: findings of drawn models, by release."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import markdown, tables
from lab.fuzz.cause import Cause
from lab.fuzz.explained import Explanation, finding
from lab.fuzz.kept import Judged, Key
from lab.pages import Part

#: Findings on each release, and unexplained causes.
FIGURES_FILE = Path(__file__).with_name("figures.tsv")
CAUSES_FILE = Path(__file__).with_name("causes.tsv")
#: Verdicts that have a column of their own, and what that is called; others share one.
NAMED = {
    "stable": "stable",
    "not-run": "not run",
    "failed": "failed",
    "corrupt": "corrupt",
    "imprecise": "imprecise",
}
#: Columns of the figures, with the counts of a release.
COUNTED = ("models", "cells", *NAMED.values(), "other", "explained", "right since", "causes left")
FIGURES = ("release", *COUNTED, "core seconds a cell")
CAUSES = ("release", "verdict", "where", "what", "cells", "smallest")
#: Characters of a cause that are shown, and causes of a release: the most frequent ones.
SHOWN = 140
SHOWN_CAUSES = 40


@dataclass(frozen=True)
class Found:
    """Findings on a release.

    Attributes
    ----------
    later
        Keys of what is in order on a later release.
    """

    rows: Sequence[Judged]
    later: frozenset[Key] = frozenset()

    def left(self, table: Sequence[Explanation]) -> Iterator[tuple[Cause, list[Judged]]]:
        """Yield the causes to look into, with their models, the most frequent first.

        These are the ones that no finding explains, and that a later release still has.
        """
        groups: dict[Cause, list[Judged]] = {}
        for row in self.rows:
            if row.wrong and row.key not in self.later and not finding(row, table):
                groups.setdefault(row.cause, []).append(row)
        yield from sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def figures(version: str, found: Found, table: Sequence[Explanation]) -> tuple[str, ...]:
    """Return the line of a release, an entry for each of `FIGURES`."""
    rows = found.rows
    counts: Counter[str] = Counter(NAMED.get(row.cause.verdict, "other") for row in rows)
    wrong = [row for row in rows if row.wrong]
    unexplained = [row for row in wrong if not finding(row, table)]
    counts["models"] = len({row.model for row in rows})
    counts["cells"] = len(rows)
    counts["explained"] = len(wrong) - len(unexplained)
    counts["right since"] = sum(row.key in found.later for row in unexplained)
    counts["causes left"] = sum(1 for _ in found.left(table))
    mean = sum(row.seconds for row in rows) / max(1, len(rows))
    return (version, *(str(counts[column]) for column in COUNTED), f"{mean:.1f}")


def parts() -> Iterator[Part]:
    """Yield the two tables of harness/lab/docs/generator.md."""
    for mark, file, columns in (("figures", FIGURES_FILE, FIGURES), ("causes", CAUSES_FILE, CAUSES)):
        yield Part("harness/lab/docs/generator.md", mark, functools.partial(_committed, file, columns))


def _committed(file: Path, columns: Sequence[str]) -> Iterator[str]:
    yield from markdown.head(columns)
    yield from (markdown.row([*row.values()]) for row in tables.read(file, columns))


def keep(version: str, found: Found, table: Sequence[Explanation]) -> None:
    """Write the findings of a release into the two tables; rows of other releases stay."""
    causes = (
        _cause(version, cause, members)
        for cause, members in itertools.islice(found.left(table), SHOWN_CAUSES)
    )
    _replaced(FIGURES_FILE, FIGURES, version, [figures(version, found, table)])
    _replaced(CAUSES_FILE, CAUSES, version, causes)


def _cause(version: str, cause: Cause, members: Sequence[Judged]) -> tuple[str, ...]:
    """Return a line of a cause, an entry for each of `CAUSES`."""
    first = min(members, key=lambda row: (row.model, row.target))
    cell = f"{first.target}/{first.model}"
    return (version, cause.verdict, cause.where or "-", cause.what[:SHOWN], str(len(members)), cell)


def _replaced(file: Path, columns: Sequence[str], version: str, lines: Iterable[Sequence[str]]) -> None:
    others = [row for row in tables.read(file, columns) if row["release"] != version]
    rows: list[dict[str, str]] = [*others, *(dict(zip(columns, line, strict=True)) for line in lines)]
    rows.sort(key=lambda row: row["release"])
    tables.write(file, columns, rows)
