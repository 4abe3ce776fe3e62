"""What is known to be wrong with cells of a guest zoo: beside its goldens, and accepted as these are.

``<root>/known.toml`` has the form of ``releases.toml``. A run that finds the same verdict accepts it;
``--snapshot-update`` writes what it finds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from harness import releases
from harness.judging import golden
from harness.judging.verdict import Verdict
from harness.releases import KnownDefect

FILE = "known.toml"
#: Verdicts that no artifact follows from, or that the next run may not find: these are not accepted.
NEVER = ("timed-out", "out-of-memory", "damaged-golden")


def read(folder: Path, release: str) -> dict[str, KnownDefect]:
    """Return the defects that a release's folder of goldens knows, by cell; raise `harness.releases.MatrixError`."""
    path = folder / FILE
    return releases.known_defects(path).get(release, {}) if path.is_file() else {}


def settled(known: Mapping[str, KnownDefect], judged: Verdict) -> dict[str, KnownDefect]:
    """Return `known` with what is now said of the cell: its defect, or that it has none."""
    others = {cell: defect for cell, defect in known.items() if cell != str(judged.cell)}
    if judged.recordable or judged.name in ("stable", *NEVER):
        return others
    return {**others, str(judged.cell): KnownDefect(judged.name, judged.reason or judged.name)}


def write(folder: Path, release: str, known: Mapping[str, KnownDefect]) -> None:
    """Replace what a release's folder of goldens knows; raise `GoldenError`."""
    path = folder / FILE
    lines = [f'[releases."{release}".known]']
    lines += [
        f"{json.dumps(cell)} = {json.dumps(f'{defect.verdict}: {defect.reason}', ensure_ascii=False)}"
        for cell, defect in sorted(known.items())
    ]
    try:
        if known:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise golden.GoldenError(
            path, f"cannot be written ({error})", "Make room for it, then record it again."
        ) from error
