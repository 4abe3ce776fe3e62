"""Decisions about cells, whatever a run found: accepted, rejected, or declared as known defects.

A cell is accepted where its golden is by now what the run made. So nothing needs to be kept of an acceptance, and one
that is taken back in the checkout no longer counts.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from executorch_goldens.causes.groups import BARRED, Group, Member
from executorch_goldens.diff.likeness import RENAMED
from executorch_goldens.errors import UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.goldens import decisions as book
from executorch_goldens.goldens import equality, golden
from executorch_goldens.goldens.decisions import Decision
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import Record
from executorch_goldens.results import proposals
from executorch_goldens.results.merging import PartialResults
from executorch_goldens.results.proposals import ProposalError
from executorch_goldens.results.rows import ALLOWED, KNOWN, ResultRow

#: Categories of a cell in place of its verdict, beside those of a run.
ACCEPTED, REJECTED = "accepted", "rejected"
#: Threads that a reason names by their number.
TRACKER = "https://github.com/pytorch/executorch/issues"
THREAD = re.compile(r"#(\d{3,6})\b")
#: Verdicts of cells that recording a golden can make pass.
RECORDABLE = ("changed", "renamed", "new", "failed")


@dataclass(frozen=True)
class ReviewDecisions:
    """Decisions, by release and cell: ``1.4.1 tosa-int/linear``.

    Attributes
    ----------
    accepted
        Cells whose golden is what the run made, and was not when it ran.
    reasons
        Why the causes of cells were rejected, by `executorch_goldens.causes.groups.Group.cause`.
    rejected
        The reason of each cell whose cause was rejected.
    """

    accepted: frozenset[str] = frozenset()
    reasons: Mapping[str, str] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Decision] = field(default_factory=dict)

    def kind(self, row: ResultRow) -> str:
        """Return the category of a cell: its verdict, or the decision about it."""
        if row.accepted:
            allowed = row.verdict == RENAMED and not row.recorded
            return KNOWN if row.known else ALLOWED if allowed else row.verdict
        if row.name in self.accepted:
            return ACCEPTED
        return REJECTED if row.name in self.rejected else row.verdict


def decisions(parts: Sequence[PartialResults], goldens: Path, groups: Sequence[Group]) -> ReviewDecisions:
    """Return the decisions about the cells of some results.

    Raises
    ------
    executorch_goldens.errors.HarnessError
        For files that cannot be read.
    """
    stated = book.read(goldens)
    reasons = rejected(stated)
    return ReviewDecisions(
        frozenset(name for part in parts for name in _accepted(part, goldens)),
        reasons,
        {
            member.proposal.name: reasons[group.cause]
            for group in groups
            if group.cause in reasons
            for member in group.members
        },
        {name: defect for part in parts for name, defect in _declared(part, goldens, stated)},
    )


def _declared(
    part: PartialResults, goldens: Path, stated: tuple[Decision, ...]
) -> Iterator[tuple[str, Decision]]:
    """Yield the known defect of each cell of a release that has one: the one that was found, if it was."""
    version = part.provenance.release
    here = book.Decisions(goldens, version, stated)
    for row in part.rows:
        if known := here.about(book.KNOWN, row.cell):
            yield row.name, min(known, key=lambda each: each.verdict != row.verdict)


def _accepted(part: PartialResults, goldens: Path) -> Iterator[str]:
    """Yield the cells of a release that a run found otherwise than their goldens, and that are these by now."""
    version = part.provenance.release
    for row in part.rows:
        if row.accepted or row.verdict not in RECORDABLE:
            continue
        made: list[Record] = []
        # Unreadable files hold no acceptance; a report says why.
        with contextlib.suppress(ProposalError):
            made = proposals.made(untrusted.inside(part.folder, row.target, row.case))
        if len(made) == 1 and _is_golden(made[0], golden.file_of(goldens / version, row.cell)):
            yield row.name


def _is_golden(made: Record, file: Path) -> bool:
    """Return whether a file has this golden; one that is damaged has none."""
    with contextlib.suppress(GoldenError):
        standing = golden.read(file)
        return standing is not None and equality.equal(standing, made)
    return False


# What a review writes


def rejected(stated: Iterable[Decision]) -> dict[str, str]:
    """Return why causes are rejected, by `executorch_goldens.causes.groups.Group.cause`."""
    return {each.cause: each.why for each in stated if each.what == book.REJECTED}


def with_rejected(stated: Iterable[Decision], reasons: Mapping[str, str]) -> list[Decision]:
    """Return decisions with these rejections in place of theirs."""
    others = [each for each in stated if each.what != book.REJECTED]
    return [*others, *(Decision(book.REJECTED, cause=cause, why=why) for cause, why in reasons.items())]


def defects(groups: Sequence[Group], reasons: Mapping[str, str]) -> list[Decision]:
    """Return the cells of rejected groups as known defects; raise UsageError for a group whose artifact is right."""
    found = []
    for group in groups:
        barred = [
            member.proposal
            for member in group.members
            if member.state == BARRED and member.proposal.verdict in book.DEFECTS
        ]
        if not barred:
            raise UsageError(
                f"{group.name} is no known defect: its cells are right, and differ from their goldens, or these are "
                "damaged. Accept or reject it without --known"
            )
        why = " ".join(reasons[group.cause].split())
        found += [
            Decision(
                book.KNOWN,
                each.verdict,
                finding=each.cause,
                why=why,
                releases=(each.release,),
                cells=(str(each.cell),),
            )
            for each in barred
        ]
    return found


def narrowed(stated: Iterable[Decision], rows: Iterable[ResultRow]) -> Iterator[Decision]:
    """Yield decisions, with the finding of each known defect that names none and that a run has found."""
    found = {(str(row.cell), row.release, row.verdict): row.cause for row in rows if row.known}
    for each in stated:
        if each.what != book.KNOWN or each.finding is not None:
            yield each
            continue
        for name, on in itertools.product(each.cells, each.releases):
            cause = found.get((name, on, each.verdict))
            yield msgspec.structs.replace(each, finding=cause, releases=(on,), cells=(name,))


def nameless(stated: Iterable[Decision]) -> int:
    """Return the number of known defects, a cell on a release each, that name no finding."""
    wide = [each for each in stated if each.what == book.KNOWN and each.finding is None]
    return sum(len(each.cells) * len(each.releases) for each in wide)


def expectations(members: Iterable[Member], why: str) -> list[Decision]:
    """Return the decisions that expect the goldens of some members, with a person's comment."""
    return [
        book.expected(member.proposal.cell, member.proposal.release, member.proposed, why)
        for member in members
        if member.proposed is not None and book.kind(member.proposed)
    ]
