"""Failures of drawn models that findings (harness/lab/docs/findings) explain: the table ``explained.toml``."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.fuzz import names
from lab.fuzz.kept import Judged

TABLE = Path(__file__).with_name("explained.toml")


@dataclass(frozen=True)
class Explanation:
    """A finding, with the failures that it explains.

    Attributes
    ----------
    finding
        Name of its page in docs/findings, ``#`` and the number of a thread of upstream's tracker, or ``limit:`` and
        what the runtime or this harness does not do.
    targets
        Pattern of their names.
    verdict, where, what
        Of the cause; the last two are regular expressions for a part of it.
    operators
        Drawn operators: the model has at least one of them; any model if empty.
    witness
        A drawn model that shows it, on a target: ``tosa-fp/drawn-1-000012``.
    release
        The release on which the witness shows it.
    """

    finding: str
    targets: str
    verdict: str
    witness: str
    where: str = ""
    what: str = ""
    operators: tuple[str, ...] = ()
    release: str = "1.4.1"

    def explains(self, row: Judged) -> bool:
        return (
            fnmatch.fnmatchcase(row.target, self.targets)
            and row.cause.verdict == self.verdict
            and re.search(self.where, row.cause.where) is not None
            and re.search(self.what, row.cause.what) is not None
            and (not self.operators or not set(self.operators).isdisjoint(names.drawn(row.model).operators))
        )


def load(table: Path = TABLE) -> tuple[Explanation, ...]:
    tables = tomllib.loads(table.read_text(encoding="utf-8")).get("explained", [])
    return tuple(Explanation(**{**row, "operators": tuple(row.get("operators", ()))}) for row in tables)


def finding(row: Judged, table: Sequence[Explanation]) -> str:
    """Return the name of the first finding that explains `row`; empty if none does."""
    return next((each.finding for each in table if each.explains(row)), "")
