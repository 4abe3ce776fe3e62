"""Results of guests, from their goldens alone: how many cells are right, and why the others are not.

``explained.toml`` says why: a finding, a thread of upstream's tracker, or a limit in words. What it does not explain is
a finding that nobody has looked into, or a false alarm of ours.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.diff.drift import Drift
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.settings import releases
from lab import GOLDENS, markdown
from lab.compact import goldens
from lab.guests import ZOOS, listing
from lab.pages import Part

TABLE = Path(__file__).with_name("explained.toml")
#: Verdict of a golden that is a failure.
FAILED = "failed"
#: Verdicts in the table of cells; others share a column.
NAMED = ("corrupt", "imprecise", "unstable")
#: Unexplained cells.
UNEXPLAINED = "not looked into"


@dataclass(frozen=True)
class Explanation:
    """Why some cells are wrong.

    Attributes
    ----------
    why
        Markdown, for a page in harness/lab/docs.
    cells
        Patterns of ``target/case``, with spaces between them.
    verdict
        Its name.
    reason
        A regular expression for a part of the reason.
    """

    why: str
    cells: str
    verdict: str
    reason: str = ""

    def explains(self, wrong: Wrong) -> bool:
        return (
            self.verdict == wrong.verdict
            and any(fnmatch.fnmatchcase(wrong.cell, pattern) for pattern in self.cells.split())
            and re.search(self.reason, wrong.reason) is not None
        )


@dataclass(frozen=True)
class Wrong:
    """A cell of a guest zoo, or of a source without goldens, that is not right."""

    zoo: str
    release: str
    cell: str
    verdict: str
    reason: str


def explanations(table: Path = TABLE) -> tuple[Explanation, ...]:
    return tuple(Explanation(**row) for row in tomllib.loads(table.read_text(encoding="utf-8"))["explained"])


def why(wrong: Wrong, table: Sequence[Explanation]) -> str:
    """Return why a cell is wrong, as the first entry says that fits; `UNEXPLAINED` if none does."""
    return next((each.why for each in table if each.explains(wrong)), UNEXPLAINED)


def recorded(root: Path) -> Iterator[tuple[str, str, int, list[Wrong]]]:
    """Yield zoo, release, number of right cells, and the others, for the results under a root of goldens."""
    for zoo in ZOOS.values():
        for version in releases.load().releases:
            folder = root / zoo.folder / version
            wrong = [
                Wrong(zoo.name, version, cell, defect.verdict, defect.cause)
                for cell, defect in Decisions.of_root(folder.parent, version).defects.items()
            ]
            right = 0
            for cell in goldens.recorded(folder):
                failure = _failure(folder, cell)
                if failure is None:
                    right += 1
                else:
                    wrong.append(Wrong(zoo.name, version, str(cell), FAILED, failure))
            if right or wrong:
                yield zoo.name, version, right, wrong


def _failure(folder: Path, cell: Cell) -> str | None:
    record = goldens.read(folder, cell)
    return record.inventory.failure if record is not None and record.fails else None


def parts() -> Iterator[Part]:
    """Yield the tables of harness/lab/docs/guests.md."""
    yield Part("harness/lab/docs/guests.md", "verdicts", lambda: tables(GOLDENS))


def tables(root: Path) -> Iterator[str]:
    """Yield the lines of the tables of harness/lab/docs/guests.md: cells, their defects, drift, too large ones."""
    found = list(recorded(root))
    columns = ("zoo", "release", "cells", "right", FAILED, *NAMED, "other", UNEXPLAINED)
    yield from markdown.head(columns)
    table = explanations()
    for zoo, version, right, wrong in found:
        counts = Counter(each.verdict if each.verdict in (FAILED, *NAMED) else "other" for each in wrong)
        left = sum(why(each, table) == UNEXPLAINED for each in wrong)
        numbers = (right + len(wrong), right, *(counts[name] for name in (FAILED, *NAMED, "other")), left)
        yield markdown.row((zoo, version, *map(str, numbers)))
    yield ""
    yield from markdown.head(("verdict", "why", "zoo", "cells by release"))
    groups: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for _, _, _, wrong in found:
        for each in wrong:
            groups[each.verdict, why(each, table), each.zoo][each.release] += 1
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
