"""The page of a cell that does not pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from executorch_goldens.causes.groups import Group, Member
from executorch_goldens.diff.quantities import BETTER, WORSE, Quantity, quantities
from executorch_goldens.goldens.findings import Fault
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.quantities import QUANTITIES, sqnr
from executorch_goldens.goldens.record import DELEGATE, Record
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.rows import Reported
from executorch_goldens.review.decisions import ACCEPTED
from executorch_goldens.words import causes, errors
from executorch_goldens.words.findings import NOT_JUDGED, NOT_RUN, artifact
from executorch_goldens.words.verdicts import FACTOR, PASS
from executorch_goldens_plugins.report import operators, passes, tensors
from executorch_goldens_plugins.report.gathering import CellResult, Gathered
from executorch_goldens_plugins.report.operators import Hunk, Listing, hunks
from executorch_goldens_plugins.report.passes import PassStep
from executorch_goldens_plugins.report.tensors import Error, PicturedTensor

#: Places of a change whose text is shown.
MOST_HUNKS = 40
#: A quantity beside `QUANTITIES`.
RATIO = "dB of SQNR of the worst output: more is better"


@dataclass(frozen=True)
class CellPage:
    """The content of a cell's page.

    Attributes
    ----------
    hunks
        Texts around what differs: of the graphs that the pass left, or else of the delegates.
    before
        The golden's own error; empty where it has none.
    failing, tensors
        Outputs and values beyond their tolerance; constants that differ.
    changes
        The differences of the artifacts, of the kinds that a review knows.
    defect
        The declared defect of the cell; empty for none.
    rejected
        Why its cause was rejected; empty where it was not.
    """

    found: CellResult
    group: Group | None
    evidence: Evidence
    labels: tuple[str, str]
    quantities: Sequence[Quantity] = ()
    listings: Sequence[Listing] = ()
    timeline: Sequence[PassStep] = ()
    hunks: Sequence[Hunk] = ()
    before: str = ""
    errors: Sequence[Error] = ()
    failing: Sequence[PicturedTensor] = ()
    tensors: Sequence[PicturedTensor] = ()
    changes: Sequence[str] = ()
    defect: str = ""
    rejected: str = ""

    @property
    def more(self) -> int:
        """Number of places beyond those shown."""
        return max(len(self.hunks) - MOST_HUNKS, 0)

    @property
    def directed(self) -> bool:
        """True if an increase is worse: the first artifact is the golden, or the base."""
        return self.labels == self.found.sides

    @property
    def blamed(self) -> str:
        """The pass that made the difference; empty where none did: a case may be another model each time."""
        row = self.found.row
        if row.fault == Fault.CASE or row.divergence is None:
            return ""
        return self.evidence.diverging or row.divergence.name

    @property
    def factor(self) -> str:
        """The factor that the cell follows, in words; empty where that was not sought."""
        found = self.found.row.attribution
        return causes.attribution(found) if found is not None else ""

    @property
    def commands(self) -> dict[str, str]:
        """Commands by purpose: none accepts what is accepted, or a cell of a cause that makes others wrong."""
        unacceptable = self.found.kind == ACCEPTED or (self.group is not None and bool(self.group.wrong))
        return {
            what: words
            for what, words in self.evidence.commands.items()
            if what != "accept" or not unacceptable
        }

    @property
    def message(self) -> list[str]:
        """The lines of the run's message that are nowhere else on the page."""
        # How a delegate differs is on the page with the operators around it.
        return [
            line
            for about, line in self.evidence.message
            if about not in (PASS, FACTOR) and not (self.hunks and about.startswith(DELEGATE))
        ]

    @property
    def pipelines(self) -> list[tuple[str, list[PassStep]]]:
        """The passes in their order, those of one pipeline that follow each other together."""
        grouped = groupby(self.timeline, key=lambda step: step.pipeline)
        return [(pipeline, list(steps)) for pipeline, steps in grouped]

    @property
    def first(self) -> PassStep | None:
        """The first pass whose result is not the same."""
        return next((step for step in self.timeline if step.first), None)


def page(found: CellResult, group: Group | None, gathered: Gathered) -> CellPage:
    """Return the page of a cell with its cause; raise the errors of its evidence."""
    evidence = found.evidence()
    labels = found.labels(evidence)
    member = gathered.whole(found.member) if found.member is not None else None
    alone = CellPage(
        *(found, group, evidence, labels),
        errors=list(tensors.errors(evidence)),
        failing=list(tensors.beyond_tolerance(evidence, found.sides[1])),
        defect=gathered.defect(found),
        rejected=gathered.decided.rejected.get(found.row.name, ""),
    )
    if member is None or member.after is None:
        old = gathered.quantities(found)
        # Accepted proposals are goldens by now.
        now = old if found.kind == ACCEPTED else {}
        of_golden = [Quantity(words, old.get(key), now.get(key)) for key, words in QUANTITIES.items() if old]
        return replace(alone, quantities=of_golden)
    listings = list(operators.listings(member.before, member.after))
    return replace(
        alone,
        quantities=_quantities(member.before, member.after),
        listings=listings,
        hunks=_hunks(evidence, listings),
        before=_numerics(member) if labels == found.sides else "",
        timeline=passes.timeline(member.before, member.after),
        tensors=list(tensors.constants(listings, labels, evidence)),
        changes=[edit.line for edit in member.edits],
    )


def found_on(found: Reported) -> str:
    """Return what a comparison found on a side, in words."""
    judged = f"{found.verdict}: {found.reason}" if found.findings else "the same as the base"
    named = artifact(found.findings[0]) if found.verdict == "new" else judged
    error = f"error {errors.against(found.accuracy.used)}" if found.accuracy is not None else ""
    unjudged = f"{NOT_JUDGED}, {NOT_RUN} {found.not_judged}" if found.not_judged else ""
    return "; ".join(filter(None, (named, error, unjudged)))


def _numerics(member: Member) -> str:
    """Return the error of the golden as a run measured it, else the golden's own field."""
    had = member.used_before
    if had is not None:
        return f"error {errors.against(had)}"
    return member.before.facts.get("numerics", "") if member.before is not None else ""


def _hunks(evidence: Evidence, listings: Sequence[Listing]) -> list[Hunk]:
    if len(evidence.after) > 1:
        one, *_, other = evidence.after.values()
        return list(hunks(one, other))
    return [hunk for listing in listings for hunk in listing.hunks()]


def _quantities(before: Record | None, after: Record) -> list[Quantity]:
    sides = before.inventory if before is not None else Inventory("no golden"), after.inventory
    of_quality = _ratio(*map(sqnr, sides))
    return [*quantities(*sides).values(), *([of_quality] if of_quality is not None else [])]


def _ratio(had: float | None, has: float | None) -> Quantity | None:
    """Return the least ratio of signal to quantization noise of both; None where neither has one."""
    if had is None or has is None or had == has:
        return None if had is has is None else Quantity(RATIO, had, has)
    return Quantity(RATIO, had, has, WORSE if has < had else BETTER)
