"""The ledger of whole runs, ``ledger.tsv`` in a root of goldens: written from merged results, and by nothing else."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from executorch_goldens import variations
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import tables, untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.results.merging import Merged

#: In a root of goldens.
FILE = "ledger.tsv"
#: Columns of the file: what a row proves, and the digest of the goldens that it was proved with.
COLUMNS = (
    *(
        "release",
        "commit",
        "cells",
        "variations",
        "exports",
        "from the store",
        "verdicts",
        "core seconds",
        "machine",
    ),
    "goldens",
)
#: Characters of a commit and of a digest that are shown.
SHORT = 12


class LedgerError(HarnessError, ValueError):
    """Results that prove too little for the ledger."""


@dataclass(frozen=True)
class Ledger:
    """The rows of the ledger by release."""

    rows: dict[str, dict[str, str]]

    @classmethod
    def read(cls, goldens: Path) -> Ledger:
        """Return the ledger of a root of goldens, without rows whose goldens have changed since; raise TableError."""
        rows = tables.read(goldens / FILE, COLUMNS)
        return cls(
            {row["release"]: row for row in rows if row["goldens"] == digest(goldens / row["release"])}
        )

    def text(self) -> str:
        """Return the text of the file, oldest release first."""
        return tables.text(COLUMNS, (self.rows[version] for version in sorted(self.rows, key=Version)))

    def with_run(self, merged: Merged, goldens: Path) -> Ledger:
        """Return the ledger with a run in the place of an earlier one of its release; raise LedgerError."""
        require_proof(merged)
        version = merged.provenance.release
        return Ledger({**self.rows, version: row(merged, digest(goldens / version))})


def digest(folder: Path) -> str:
    """Return a digest of the goldens in a release's folder: of the names and bytes of their files."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*/*/*"), *folder.glob("*.cells.txt")]):
        found.update(
            f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes()
        )
    return found.hexdigest()[:SHORT]


def require_proof(merged: Merged) -> None:
    """Raise LedgerError unless a run proves the ledger's entry."""
    came = merged.provenance
    full = [variation.name for variation in variations.variations()]
    lacking = [name for name in full if name not in came.variations]
    wrong = merged.wrong()
    what = ""
    if not came.whole:
        what = f"has {count(len(came.cells), 'cell')}, which are not all of the zoo"
    elif lacking:
        what = f"has {count(len(came.variations), 'variation')}, without {', '.join(lacking)}"
    elif came.commit is None:
        what = "is of no commit"
    elif came.changes:
        what = f"is of a checkout with changes on top of {came.commit[:SHORT]}: commit them and run it again"
    elif wrong:
        example = f"{wrong[0]['target']}/{wrong[0]['case']} is {wrong[0]['verdict']}"
        what = f"has {count(len(wrong), 'cell')} with a verdict that does not pass: {example}"
    if what:
        raise LedgerError(f"not for the ledger: the run on ExecuTorch {came.release} {what}")


def row(merged: Merged, goldens: str) -> dict[str, str]:
    """Return the row of a run, which compared with goldens of this digest."""
    came = merged.provenance
    assert came.commit is not None
    names = Counter(f"{'known ' if each['known'] else ''}{each['verdict']}" for each in merged.rows)
    fields = (
        came.release,
        came.commit[:SHORT],
        len(merged.rows),
        len(came.variations),
        merged.exports(),
        sum(sum(each.get("reused", ())) for each in merged.rows),
        ", ".join(f"{count} {name}" for name, count in names.most_common()),
        f"{merged.core_seconds():.0f}",
        "; ".join(untrusted.escape_controls(name) for name in came.machines),
        goldens,
    )
    return dict(zip(COLUMNS, map(str, fields), strict=True))
