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
from executorch_goldens.goldens import equality, findings, golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.golden import ConflictError
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import JudgedCell, compare, damaged, undecodable
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.snapshot import GoldenExtension
from executorch_goldens.judging.updating import Updating, fewer
from executorch_goldens.judging.verdict import UNEXPECTED, Acceptance, Verdict, as_known
from executorch_goldens.settings.releases import Release


@dataclass(frozen=True)
class Judge:
    """Judges cells against the goldens under a folder, and records them.

    Attributes
    ----------
    holding
        Whether what would replace a golden is held back: see `executorch_goldens.judging.verdict.Acceptance`.
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
    ) -> JudgedCell:
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
            outcomes = Exports(outcomes)
            comparison = compare(cell, outcomes, reviewed, release, self.decided, self.allow)
            raised = all(each.case_failure for each in outcomes)
            if comparison.verdict.name != "stable" and not raised and under_all is not None:
                outcomes = Exports(under_all())
                comparison = compare(cell, outcomes, reviewed, release, self.decided, self.allow)
            if comparison.record is not None and (own := self._own_failure(cell, outcomes)):
                return JudgedCell(as_known(self.decided, own), reviewed=reviewed)
            comparison = dataclasses.replace(
                comparison, verdict=self._placed(comparison.verdict, outcomes), reviewed=reviewed
            )
            if conflict is not None and comparison.record is not None:
                comparison = comparison.with_verdict(findings=(findings.DamagedGolden(conflict.what),))
            return self._decided(path, comparison, snapshot)
        except golden.UnwritableError:
            raise
        except golden.GoldenError as error:
            return JudgedCell(damaged(cell, error))
        except DecodeError as error:
            return JudgedCell(undecodable(cell, error, self.decided), reviewed=reviewed)

    def _own_failure(self, cell: Cell, outcomes: Sequence[Outcome]) -> Verdict | None:
        """Object to a failure that is raised in a file of the repository's own."""
        failure = Exports(outcomes).agreed.result
        if not isinstance(failure, Failure):
            return None
        place = self.own.place(failure.traceback, cell.target)
        return verdict.own_failure(cell, failure, self.own.relative(place)) if place is not None else None

    def _placed(self, judged: Verdict, outcomes: Sequence[Outcome]) -> Verdict:
        """Name the line of a case that raised before anything was lowered."""
        failure = outcomes[0].case_failure
        place = self.own.nearest(failure.traceback, judged.cell.target) if failure is not None else None
        if place is None:
            return judged
        return dataclasses.replace(judged, raised=(self.own.relative(place), len(outcomes)))

    def _reviewed(self, path: Path) -> tuple[Record | None, ConflictError | None]:
        """Return the golden in `path`; where a merge left none and one may be written, why there is none."""
        try:
            return golden.read(path), None
        except ConflictError as error:
            if not self.updating.changed:
                raise
            return None, error

    def _decided(self, path: Path, comparison: JudgedCell, snapshot: SnapshotAssertion) -> JudgedCell:
        """Record unless a decision is missing; otherwise report the missing decision."""
        judged, made, reviewed = comparison.verdict, comparison.record, comparison.reviewed
        if made is None or judged.allowed:
            return self._recorded(path, comparison, snapshot)
        stable = judged.name == "stable"
        # Of two that count as the same, a person has seen the golden.
        seen = reviewed if stable and reviewed is not None else made
        if missing := self.decided.missing(judged.cell, seen, stable):
            if not stable:
                return comparison.with_verdict(refusal=missing)
            decision = missing.decision
            unexpected = (findings.Unexpected(missing.what, decision.cause, decision.outside or ()),)
            return JudgedCell(Verdict(judged.cell, UNEXPECTED, unexpected, refusal=missing), made, reviewed)
        return self._recorded(path, comparison, snapshot)

    def _recorded(self, path: Path, comparison: JudgedCell, snapshot: SnapshotAssertion) -> JudgedCell:
        """Let syrupy compare once more, count and, where that was asked for, record."""
        judged, made, reviewed = comparison.verdict, comparison.record, comparison.reviewed
        if made is None or (judged.name == "changed" and reviewed is None):
            # A known defect that is right now gets a golden only once the defect is deleted.
            return comparison
        if self.updating.changed and reviewed is not None and judged.recordable:
            if refusal := fewer(reviewed, made):
                return comparison.with_verdict(refusal=refusal)
            if self.holding:
                return comparison.with_verdict(acceptance=Acceptance.HELD)
        extension = GoldenExtension.for_golden(path, reviewed)
        with self.alone():
            recorded = snapshot.use_extension(extension) == made
            if extension.failed is not None:
                raise extension.failed
            standing = reviewed if judged.name == "stable" else None
            confirmed = standing is not None and self.updating.changed and self._confirm(path, standing, made)
        lacking = (
            standing is not None and not self.updating.changed and bool(equality.missing(standing, made))
        )
        if recorded and judged.recordable:
            comparison = comparison.with_verdict(acceptance=Acceptance.RECORDED)
        return dataclasses.replace(comparison, confirmed=confirmed, lacking=lacking)

    def _confirm(self, path: Path, reviewed: Record, made: Record) -> bool:
        """Add agreeing variations and missing facts to a golden; return whether there were any."""
        confirmed = equality.confirmed(reviewed, made)
        if confirmed == reviewed:
            return False
        golden.write(path, confirmed)
        return True
