"""Records the accepted groups: all of them, as reviewed, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.judging.updating import require_a_person
from executorch_goldens.results import proposals
from executorch_goldens.results.proposals import Proposal, ProposalError
from executorch_goldens.results.rows import lock
from executorch_goldens.review.groups import Member
from executorch_goldens.review.standing import Standing


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
            reason = f"{member.proposal.verdict}: {member.proposal.reason}"
            raise _refused(member.proposal, f"may not be recorded, it is {reason}")
    now = standing.refreshed()
    with _alone({member.proposal.release for member in accepted}, sweeps, goldens):
        texts = [(member.proposal, _reviewed(member, now)) for member in accepted]
        written = []
        for proposal, of_cell in texts:
            roots.claim(goldens, proposal.models)
            roots.share(goldens / proposal.release, golden.fields(of_cell))
            place = golden.file_of(goldens / proposal.release, proposal.cell)
            golden.write(place, of_cell)
            proposals.discard(proposal.folder)
            written.append(place)
    return written


def _reviewed(member: Member, standing: Standing) -> Texts:
    """Return the golden-to-be of a cell, if it is the reviewed one and may be recorded; raise UsageError."""
    try:
        now = Proposal.read(member.proposal.folder / proposals.FILE)
        texts = now.texts()
    except ProposalError as error:
        raise UsageError(str(error)) from error
    if now != member.proposal or texts != member.proposed:
        raise _refused(now, "is proposed otherwise than it was reviewed: review it again")
    if objection := standing.objection(now) or standing.undecided(now):
        raise _refused(now, objection)
    return texts


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
