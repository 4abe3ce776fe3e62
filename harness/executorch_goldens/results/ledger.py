"""The ledger of whole runs, ``docs/proof.md``: written from merged results, by nothing else and nobody's hand."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from executorch_goldens import variations
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import untrusted
from executorch_goldens.results.merging import Merged

HEAD = """\
# Proof

Every cell of a release, exported under every variation and compared with its golden. `goldens merge --ledger`
writes this page from the results of such runs, and nothing else does: [running](running.md#the-ledger).

| release | commit | cells | variations | exports | verdicts | core seconds | machine |
|---|---|---|---|---|---|---|---|
"""

#: What would end a cell of a table, or begin an HTML tag, in the name of a machine.
PLAIN = str.maketrans("|<>`", "/()'")

#: Characters of a commit that are shown.
SHORT = 12

ROW = re.compile(r"\| (\d[\w.]*) \|(?: [^|]+ \|){7}")


class LedgerError(HarnessError, ValueError):
    """Results that prove too little for the ledger, or a ledger that something else has written."""


@dataclass(frozen=True)
class Ledger:
    """The lines of the ledger by release."""

    rows: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Return the ledger in a file, empty where there is none; raise LedgerError unless `text` has written it."""
        if not path.exists():
            return cls({})
        text = path.read_text(encoding="utf-8")
        found = [match for line in text.splitlines() if (match := ROW.fullmatch(line))]
        ledger = cls({match[1]: match[0] for match in found})
        if ledger.text() != text:
            raise LedgerError(
                f"{path} was not written by `goldens merge --ledger`: if it is a page of your own, move it; "
                f"if it was a ledger, bring it back with 'git checkout -- {path}'"
            )
        return ledger

    def text(self) -> str:
        """Return the page, oldest release first."""
        return HEAD + "".join(f"{self.rows[version]}\n" for version in sorted(self.rows, key=Version))

    def with_run(self, merged: Merged) -> Ledger:
        """Return the ledger with a run in the place of an earlier one of its release; raise LedgerError."""
        require_proof(merged)
        return Ledger({**self.rows, merged.provenance.release: row(merged)})


def require_proof(merged: Merged) -> None:
    """Raise LedgerError unless a run proves what the ledger says of it."""
    came = merged.provenance
    full = [variation.name for variation in variations.variations()]
    lacking = [name for name in full if name not in came.variations]
    wrong = merged.wrong()
    what = ""
    if not came.whole:
        what = f"has {len(came.cells)} cells, which are not all of the zoo"
    elif lacking:
        what = f"has {len(came.variations)} variations, without {', '.join(lacking)}"
    elif came.commit is None:
        what = "is of no commit"
    elif came.changes:
        what = f"is of a checkout with changes on top of {came.commit[:SHORT]}: commit them and run it again"
    elif wrong:
        example = f"{wrong[0]['target']}/{wrong[0]['case']} is {wrong[0]['verdict']}"
        what = f"has {len(wrong)} cells that are not as they should be: {example}"
    if what:
        raise LedgerError(f"not for the ledger: the run on ExecuTorch {came.release} {what}")


def row(merged: Merged) -> str:
    """Return the line of a run."""
    came = merged.provenance
    assert came.commit is not None
    names = Counter(f"{'known ' if each['known'] else ''}{each['verdict']}" for each in merged.rows)
    reused = sum(sum(each.get("reused", ())) for each in merged.rows)
    fields = (
        came.release,
        came.commit[:SHORT],
        str(len(merged.rows)),
        str(len(came.variations)),
        f"{merged.exports():,}" + (f", {reused:,} of them from the store" if reused else ""),
        ", ".join(f"{count} {name}" for name, count in names.most_common()),
        f"{merged.core_seconds():,.0f}",
        "; ".join(" ".join(untrusted.shown(name).split()).translate(PLAIN) for name in came.machines),
    )
    return f"| {' | '.join(fields)} |"
