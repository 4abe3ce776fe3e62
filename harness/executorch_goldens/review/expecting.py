"""Writes expectations: for an accepted group, or for existing goldens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.judging import expectations
from executorch_goldens.judging.expectations import Expectations, Expected
from executorch_goldens.review.groups import Member
from executorch_goldens.zoo.registry import RELEASE


@dataclass(frozen=True)
class Updated:
    """Changes that `update` made to the file of a root.

    Attributes
    ----------
    stated
        The new expectations.
    found
        Goldens that are a decision.
    written
        Those of them that nothing expected.
    gone
        Former expectations of goldens, as (cell, release).
    """

    stated: tuple[Expected, ...]
    found: int
    written: int
    gone: tuple[tuple[str, str], ...]


def expect(root: Path, members: Iterable[Member], why: str) -> int:
    """Write that the goldens of some members are expected, and return of how many; raise `GoldenError`.

    Parameters
    ----------
    why
        The person's comment on them; where it is empty, that of the goldens.
    """
    found = [
        of_golden(member.proposal.cell, member.proposal.release, member.proposed, why)
        for member in members
        if member.proposed is not None and expectations.kind(member.proposed)
    ]
    if found:
        expectations.write(root, [*expectations.read(root), *found])
    return len(found)


def update(root: Path) -> Updated:
    """Update the file of a root to match its goldens: missing expectations are written, stale ones deleted.

    Raises
    ------
    executorch_goldens.goldens.golden.GoldenError
        For a golden that cannot be read, and where the file cannot be written.
    executorch_goldens.judging.expectations.ExpectationError
        For a file that cannot be used.
    """
    goldens = list(_decisions(root))
    kinds = {(str(cell), release): expectations.kind(texts) for cell, release, texts in goldens}
    stated, gone = [], []
    for each in expectations.read(root):
        for name, release in ((name, release) for name in each.cells for release in each.releases):
            if expectations.is_pattern(name) or kinds.get((name, release)) == each.what:
                stated.append(Expected(each.what, (release,), (name,), each.cause, each.why))
            else:
                gone.append((name, release))
    missing = [
        of_golden(cell, release, texts)
        for cell, release, texts in goldens
        if Expectations(root, release, tuple(stated)).missing(cell, texts)
    ]
    joined = tuple(expectations.joined([*stated, *missing]))
    expectations.write(root, joined)
    return Updated(joined, len(goldens), len(missing), tuple(gone))


def of_golden(cell: Cell, release: str, texts: Texts, why: str = "") -> Expected:
    """Return the expectation for a golden that is a decision."""
    return Expected(expectations.kind(texts), (release,), (str(cell),), why=why or expectations.words(texts))


def _decisions(root: Path) -> Iterator[tuple[Cell, str, Texts]]:
    """Yield the goldens of every release under a root that are a decision."""
    for folder in _releases(root):
        for cell in golden.recorded(folder):
            texts = golden.read(golden.directory(folder, cell))
            if texts is not None and expectations.kind(texts):
                yield cell, folder.name, texts


def _releases(root: Path) -> Sequence[Path]:
    if not root.is_dir():
        return []
    return sorted(folder for folder in root.iterdir() if folder.is_dir() and RELEASE.fullmatch(folder.name))
