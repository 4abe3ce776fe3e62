"""The figures of docs/generator.md: what was found of drawn models, by release."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.files import markdown
from lab import REPOSITORY
from lab.fuzz.cause import Cause
from lab.fuzz.explained import Explanation, finding
from lab.fuzz.kept import Judged, Key

PAGE = REPOSITORY / "docs" / "generator.md"
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
    """What was found on a release.

    Attributes
    ----------
    later
        Keys of what is in order on a later release.
    """

    rows: Sequence[Judged]
    later: frozenset[Key] = frozenset()

    def left(self, table: Sequence[Explanation]) -> Iterator[tuple[Cause, list[Judged]]]:
        """Yield the causes to look into, with what has them, the most frequent first.

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


def updated(page: str, found: Mapping[str, Found], table: Sequence[Explanation]) -> str:
    """Return the page with new lines for the releases of `found`; those of others stay."""
    counted = [figures(version, of_release, table) for version, of_release in found.items()]
    causes = [
        _cause(version, cause, members)
        for version, of_release in found.items()
        for cause, members in itertools.islice(of_release.left(table), SHOWN_CAUSES)
    ]
    page = _between(page, "figures", FIGURES, counted, set(found))
    return _between(page, "causes", CAUSES, causes, set(found))


def _cause(version: str, cause: Cause, members: Sequence[Judged]) -> tuple[str, ...]:
    """Return a line of a cause, an entry for each of `CAUSES`."""
    first = min(members, key=lambda row: (row.model, row.target))
    cell = f"{first.target}/{first.model}"
    return (version, cause.verdict, cause.where or "-", cause.what[:SHOWN], str(len(members)), cell)


def _between(
    page: str, mark: str, columns: Sequence[str], lines: Iterable[Sequence[str]], versions: Collection[str]
) -> str:
    """Return the page with a table between its two marks: `lines`, and what there was of other releases."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = page.partition(begin)
    old, _, after = rest.partition(end)
    others = [line for line in old.splitlines()[2:] if line.split(" ")[1] not in versions]
    ordered = sorted([*others, *map(markdown.row, lines)], key=lambda line: line.split(" ")[1])
    table = [*markdown.head(columns), *ordered]
    return before + begin + "\n".join(table) + "\n" + end + after
