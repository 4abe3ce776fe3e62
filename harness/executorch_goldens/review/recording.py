"""Records the accepted groups: all of them, as reviewed, or none."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import filelock

from executorch_goldens.causes.groups import Group, Member
from executorch_goldens.causes.standing import Standing
from executorch_goldens.errors import CommandError, UsageError
from executorch_goldens.files.invocation import require_a_person
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.record import Record
from executorch_goldens.results import proposals
from executorch_goldens.results.proposals import CellFile, Proposal, ProposalError
from executorch_goldens.results.rows import lock
from executorch_goldens.review.decisions import THREAD, TRACKER
from executorch_goldens.review.listing import ALTHOUGH
from executorch_goldens.words import findings, refusals

#: File beside the results that holds it, for ``git commit -F``.
FILE = "commit.txt"
#: Columns of its text.
WIDTH = 72


def require_no_doubt(groups: Sequence[Group]) -> None:
    """Raise CommandError for a cause that makes other cells wrong than those that would be recorded."""
    for group in groups:
        if group.doubt is not None:
            raise CommandError(
                f"nothing was recorded: {group.name}: {refusals.doubt(group.doubt)}. Reject the cause, or accept its "
                f"other {count(len(group.recordable), 'cell')} with {ALTHOUGH}"
            )


def record(accepted: Sequence[Member], sweeps: Path, goldens: Path, standing: Standing) -> list[Path]:
    """Write the goldens that the cells propose, and return where they are.

    What was reviewed is compared, by digest, with what is proposed now, and what it replaces with what is there:
    where one of the cells does not pass, nothing is written.

    Raises
    ------
    UsageError
        For a cell that may not be recorded, or that is proposed otherwise than it was reviewed.
    executorch_goldens.goldens.golden.GoldenError
        Where goldens cannot be written, or a run is writing them.
    """
    require_a_person(True, "review --accept")
    for member in accepted:
        if member.proposal.content is None:
            proposal = member.proposal
            why = findings.reason(proposal.found, proposal.target, member.labels)
            raise _refused(proposal, f"may not be recorded, it is {proposal.verdict}: {why}")
    now = standing.refreshed()
    with _alone({member.proposal.release for member in accepted}, sweeps, goldens):
        records = [(member.proposal, _reviewed(member, now)) for member in accepted]
        written = []
        for proposal, of_cell in records:
            roots.claim(goldens, proposal.models)
            roots.share(goldens / proposal.release, of_cell.facts)
            place = golden.file_of(goldens / proposal.release, proposal.cell)
            golden.write(place, of_cell)
            proposals.discard(proposal.folder)
            written.append(place)
    return written


def _reviewed(member: Member, standing: Standing) -> Record:
    """Return the golden-to-be of a cell, if it is the reviewed one and may be recorded; raise UsageError."""
    try:
        now = CellFile.load(member.proposal.folder).proposal
        proposed = member.proposal.proposed()
    except ProposalError as error:
        raise UsageError(str(error)) from error
    if now != member.proposal or proposed != member.proposed:
        raise _refused(member.proposal, "is proposed otherwise than it was reviewed: review it again")
    if objection := standing.objection(now):
        raise _refused(now, objection)
    if (undecided := standing.undecided(now, proposed)) is not None:
        raise _refused(now, refusals.refusal(undecided))
    return proposed


def _refused(proposal: Proposal, why: str) -> UsageError:
    return UsageError(f"nothing was recorded: {proposal.name} {why}")


@contextlib.contextmanager
def _alone(releases: set[str], sweeps: Path, goldens: Path) -> Iterator[None]:
    """Keep runs from writing results and goldens of the releases; raise UsageError or GoldenError."""
    with contextlib.ExitStack() as held:
        for release in sorted(releases):
            its_results = lock(sweeps / release)
            try:
                held.enter_context(its_results.acquire(timeout=0))
            except filelock.Timeout as error:
                raise UsageError(
                    f"nothing was recorded: a run works on {release} (it holds {its_results.lock_file}): wait for it"
                ) from error
            its_goldens = roots.lock(goldens, release)
            roots.open_for_writing(goldens / release, its_goldens)
            held.callback(its_goldens.release)
        yield


def message(groups: Sequence[Group], recorded: Collection[str], rejected: Mapping[str, str]) -> str:
    """Return the message: accepted causes with their cells, and rejected ones with the reason."""
    by_group = [
        (group, [each.proposal.name for each in group.members if each.proposal.name in recorded])
        for group in groups
    ]
    accepted = [(group, names) for group, names in by_group if names]
    cells = sum(len(names) for _, names in accepted)
    lines = [f"Goldens: {count(cells, 'cell')} of {count(len(accepted), 'cause')}"]
    for group, names in accepted:
        lines += ["", *_wrapped(f"{group.head}: {len(names)} accepted")]
        lines += [f"- {name}" for name in names]
    for group in groups:
        if reason := rejected.get(group.cause):
            lines += ["", *_wrapped(f"Rejected: {group.head}: {reason}")]
    threads = dict.fromkeys(number for reason in rejected.values() for number in THREAD.findall(reason))
    if threads:
        lines += ["", *(f"{TRACKER}/{number}" for number in threads)]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
