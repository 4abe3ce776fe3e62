"""One way to judge a cell and to record it, for runs over zoos and for the tests of a suite.

Goldens are compared, and recorded where that was asked for; what disagrees or is wrong never is.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Failure, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import decisions, equality, golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.golden import ConflictError, Texts
from executorch_goldens.goldens.snapshot import GoldenExtension
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import Comparison, compare, damaged, undecodable
from executorch_goldens.judging.known import as_known
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.updating import Updating, fewer
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings.releases import Release


@dataclass(frozen=True)
class Judged:
    """A judged cell, and the golden written for it.

    Attributes
    ----------
    texts
        The golden that the cell would get; None for an artifact that may not be recorded.
    reviewed
        Its golden; None where it has none that can be used.
    held
        Whether it is left to the caller to record it, once that knows what else its cause has changed.
    confirmed
        Whether its golden now says more of how it is made than before.
    lacking
        Whether its golden lacks what goldens recorded today have.
    """

    verdict: Verdict
    texts: Texts | None = None
    reviewed: Texts | None = None
    held: bool = False
    confirmed: bool = False
    lacking: bool = False


@dataclass(frozen=True)
class Judge:
    """Judges cells against the goldens under a folder, and records them.

    Attributes
    ----------
    root
        Directory of the goldens of a release.
    holding
        Whether what would replace a golden is held back: see `Judged.held`.
    allow
        See `executorch_goldens.settings.config.Config`.
    decided
        The decisions about cells of the release.
    own
        Failures that are raised in these are no goldens.
    alone
        Keeps others from writing there while a golden is written.
    """

    root: Path
    decided: Decisions
    own: OwnFiles
    updating: Updating = field(default_factory=Updating)
    holding: bool = False
    allow: Collection[str] = ()
    alone: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext

    def judge(
        self,
        cell: Cell,
        outcomes: Sequence[Outcome],
        release: Release,
        snapshot: SnapshotAssertion,
        under_all: Callable[[], Sequence[Outcome]] | None = None,
    ) -> Judged:
        """Judge the exports of `cell`, and record it where that was asked for.

        Parameters
        ----------
        under_all
            Exports the cell under the variations that `outcomes` lack, and returns the outcomes of all; called where
            `outcomes` are not the golden's.

        Raises
        ------
        UnwritableError
            When its golden cannot be written.
        """
        path = golden.file_of(self.root, cell)
        try:
            reviewed, conflict = self._reviewed(path)
            comparison = compare(cell, outcomes, reviewed, release, self.decided, self.allow)
            if comparison.verdict.name != "stable" and under_all is not None:
                outcomes = under_all()
                comparison = compare(cell, outcomes, reviewed, release, self.decided, self.allow)
            if comparison.texts is not None and (own := self._own_failure(cell, outcomes)):
                return Judged(as_known(self.decided, own), reviewed=reviewed)
            if conflict is not None and comparison.texts is not None:
                merged = dataclasses.replace(comparison.verdict, reason=conflict.what)
                comparison = dataclasses.replace(comparison, verdict=merged)
            return self._decided(path, comparison, reviewed, snapshot)
        except golden.UnwritableError:
            raise
        except golden.GoldenError as error:
            return Judged(damaged(cell, error))
        except DecodeError as error:
            return Judged(undecodable(cell, error, self.decided), reviewed=reviewed)

    def _own_failure(self, cell: Cell, outcomes: Sequence[Outcome]) -> Verdict | None:
        """Object to a failure that is raised in a file of the repository's own."""
        failure = verdict.agreed(outcomes).result
        if not isinstance(failure, Failure):
            return None
        place = self.own.place(failure.traceback, cell.target)
        return verdict.own_failure(cell, failure, place) if place is not None else None

    def _reviewed(self, path: Path) -> tuple[Texts | None, ConflictError | None]:
        """Return the golden in `path`; where a merge left none and one may be written, why there is none."""
        try:
            return golden.read(path), None
        except ConflictError as error:
            if not self.updating.changed:
                raise
            return None, error

    def _decided(
        self, path: Path, comparison: Comparison, reviewed: Texts | None, snapshot: SnapshotAssertion
    ) -> Judged:
        """Record unless a decision is missing; otherwise report the missing decision."""
        judged, texts = comparison.verdict, comparison.texts
        if texts is None or judged.allowed:
            return self._recorded(path, comparison, reviewed, snapshot)
        stable = judged.name == "stable" and reviewed is not None
        # Of two that count as the same, a person has seen the golden.
        seen = reviewed if stable and reviewed is not None else texts
        if missing := self.decided.missing(judged.cell, seen, stable):
            return Judged(self._undecided(judged, texts, missing), texts, reviewed)
        return self._recorded(path, comparison, reviewed, snapshot)

    def _undecided(self, judged: Verdict, texts: Texts, missing: str) -> Verdict:
        if judged.name != "stable":
            return dataclasses.replace(judged, refusal=missing)
        return verdict.unexpected(judged.cell, decisions.kind(texts), decisions.cause_of(texts), missing)

    def _recorded(
        self, path: Path, comparison: Comparison, reviewed: Texts | None, snapshot: SnapshotAssertion
    ) -> Judged:
        """Let syrupy compare once more, count and, where that was asked for, record."""
        judged, texts = comparison.verdict, comparison.texts
        if texts is None or (judged.name == "changed" and reviewed is None):
            # A known defect that is right now gets a golden only once the defect is deleted.
            return Judged(judged, texts, reviewed)
        if (
            self.updating.changed
            and reviewed is not None
            and (refusal := self._refusal(judged, reviewed, texts))
        ):
            return Judged(dataclasses.replace(judged, refusal=refusal), texts, reviewed)
        if self.holding and self.updating.changed and reviewed is not None and judged.recordable:
            return Judged(dataclasses.replace(judged, recorded=True), texts, reviewed, held=True)
        extension = GoldenExtension.of(path, reviewed)
        with self.alone():
            recorded = snapshot.use_extension(extension) == texts
            if extension.failed is not None:
                raise extension.failed
            stable = judged.name == "stable" and reviewed is not None
            confirmed = stable and self.updating.changed and self._confirm(path, reviewed or {}, texts)
        lacking = stable and not self.updating.changed and bool(equality.missing(reviewed or {}, texts))
        judged = dataclasses.replace(judged, recorded=recorded and judged.recordable)
        return Judged(judged, texts, reviewed, confirmed=confirmed, lacking=lacking)

    def _refusal(self, judged: Verdict, reviewed: Texts, texts: Texts) -> str:
        """Return why a golden is not replaced by one that is right as well; empty where it may be."""
        return fewer(reviewed, texts) if judged.recordable else ""

    def _confirm(self, path: Path, reviewed: Texts, texts: Texts) -> bool:
        """Add agreeing variations and missing fields to a golden; return whether there were any."""
        confirmed = equality.confirmed(reviewed, texts)
        if confirmed == reviewed:
            return False
        golden.write(path, confirmed)
        return True
