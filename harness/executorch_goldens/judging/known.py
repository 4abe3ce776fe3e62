"""What is known to be wrong with cells of a further zoo: beside its goldens, and accepted as these are.

``known.toml`` in the folder of a release has the form of ``releases.toml``. A run that finds the same verdict accepts
it. That of a compact root is written by ``--snapshot-update``; that of any other, by a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executorch_goldens import releases
from executorch_goldens.files import durable
from executorch_goldens.goldens import golden, merging, roots
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.releases import KnownDefect

FILE = "known.toml"
#: Verdicts that no artifact follows from, or that the next run may not find: these are not accepted.
NEVER = ("timed-out", "out-of-memory", "damaged-golden")
#: What ends a process from outside: the system that lacks memory, or a person.
FROM_OUTSIDE = "killed by SIGKILL"


def read(folder: Path, release: str) -> dict[str, KnownDefect]:
    """Return the defects that a release's folder of goldens knows, by cell; raise `releases.MatrixError`."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        return releases.known_defects(path).get(release, {})
    except releases.MatrixError as error:
        if conflict := merging.conflict_in(path):
            raise releases.MatrixError(f"{path}: {conflict}. {merging.take_a_side(path)}") from error
        raise


def own(root: Path, release: str) -> bool:
    """Whether a root of goldens says by itself what is wrong on a release; raise `goldens.golden.GoldenError`.

    A compact one does, also where nothing is wrong; a different one where it has the file.
    """
    return roots.is_compact(root) or (root / release / FILE).is_file()


def of(
    root: Path, release: str, declared: Mapping[str, Mapping[str, KnownDefect]]
) -> Mapping[str, KnownDefect]:
    """Return what is wrong on a release with the cells of a root of goldens, by cell.

    Parameters
    ----------
    declared
        What the repository says of its own zoo, by release and cell.
    """
    return read(root / release, release) if own(root, release) else declared.get(release, {})


def settled(known: Mapping[str, KnownDefect], judged: Verdict) -> dict[str, KnownDefect]:
    """Return `known` with what is now said of the cell: its defect, or that it has none."""
    others = {cell: defect for cell, defect in known.items() if cell != str(judged.cell)}
    passing = judged.name in NEVER or FROM_OUTSIDE in judged.reason or judged.is_of_harness
    if judged.recordable or judged.name == "stable" or passing:
        return others
    return {**others, str(judged.cell): KnownDefect(judged.name, judged.reason.strip() or judged.name)}


def write(folder: Path, release: str, known: Mapping[str, KnownDefect]) -> None:
    """Replace what a release's folder of goldens knows; raise `GoldenError`."""
    path = folder / FILE
    # Only here: what reads them does without.
    import tomlkit

    texts = {cell: f"{defect.verdict}: {defect.reason}" for cell, defect in sorted(known.items())}
    # Half of a pair of UTF-16, which no TOML can hold, is there as its escape.
    texts = {cell: text.encode("utf-8", "backslashreplace").decode() for cell, text in texts.items()}
    try:
        if known:
            durable.replace(path, tomlkit.dumps({"releases": {release: {"known": texts}}}))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise golden.UnwritableError(
            path, f"cannot be written ({error})", "Make room for it, then record it again."
        ) from error
