"""The figures of docs/generator.md: what was found of drawn models, by release."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.drawing.cause import IN_ORDER, Cause
from harness.drawing.explained import Explanation, finding
from harness.drawing.kept import Judged

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "generator.md"
#: Columns of the figures, after the release.
COLUMNS = (
    *(
        "models",
        "cells",
        "stable",
        "not run",
        "failed",
        "corrupt",
        "imprecise",
        "other",
        "explained",
        "causes left",
    ),
    "core seconds a cell",
)
#: Verdicts that have a column of their own.
NAMED = {
    "stable": "stable",
    "not-run": "not run",
    "failed": "failed",
    "corrupt": "corrupt",
    "imprecise": "imprecise",
}
#: Characters of a cause that are shown, and causes of a release: the most frequent ones.
SHOWN = 140
SHOWN_CAUSES = 40


def figures(rows: Sequence[Judged], table: Sequence[Explanation]) -> list[str]:
    """Return the cells of a release's line, one for each of `COLUMNS`."""
    counts: Counter[str] = Counter(NAMED.get(row.cause.verdict, "other") for row in rows)
    wrong = [row for row in rows if row.cause.verdict not in IN_ORDER]
    explained = [row for row in wrong if finding(row, table)]
    counts["models"] = len({row.model for row in rows})
    counts["cells"] = len(rows)
    counts["explained"] = len(explained)
    counts["causes left"] = len({(row.target, row.cause) for row in wrong if row not in explained})
    mean = sum(row.seconds for row in rows) / max(1, len(rows))
    return [*(str(counts[column]) for column in COLUMNS[:-1]), f"{mean:.1f}"]


def left(rows: Sequence[Judged], table: Sequence[Explanation]) -> Iterator[tuple[Cause, list[Judged]]]:
    """Yield the causes that no finding explains, with what has them, the most frequent first."""
    groups: dict[Cause, list[Judged]] = {}
    for row in rows:
        if row.cause.verdict not in IN_ORDER and not finding(row, table):
            groups.setdefault(row.cause, []).append(row)
    yield from sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def updated(page: str, found: Mapping[str, Sequence[Judged]], table: Sequence[Explanation]) -> str:
    """Return the page with new lines for the releases of `found`; those of others stay."""
    lines = {
        version: f"| {' | '.join([version, *figures(rows, table)])} |" for version, rows in found.items()
    }
    page = _between(page, "figures", lines, ["release", *COLUMNS])
    causes = {
        f"{version} {number:03}": _line(version, cause, members)
        for version, rows in found.items()
        for number, (cause, members) in enumerate(itertools.islice(left(rows, table), SHOWN_CAUSES))
    }
    return _between(
        page, "causes", causes, ["release", "verdict", "where", "what", "cells", "smallest"], found
    )


def _line(version: str, cause: Cause, members: Sequence[Judged]) -> str:
    first = min(members, key=lambda row: (row.model, row.target))
    cells = [
        version,
        cause.verdict,
        cause.where or "-",
        cause.what[:SHOWN],
        str(len(members)),
        f"{first.target}/{first.model}",
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _between(
    page: str,
    mark: str,
    lines: Mapping[str, str],
    columns: Sequence[str],
    replaced: Mapping[str, object] | None = None,
) -> str:
    """Return the page with `lines` between its two marks; lines of releases that are not `replaced` stay."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = page.partition(begin)
    old, _, after = rest.partition(end)
    versions = {key.partition(" ")[0] for key in (lines if replaced is None else replaced)}
    stays = [line for line in old.splitlines()[2:] if re.match(r"\| (\S+) ", line)[1] not in versions]  # type: ignore[index]
    ordered = sorted([*stays, *lines.values()], key=lambda line: line.split(" ")[1])
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return before + begin + "\n".join([*head, *ordered]) + "\n" + end + after
