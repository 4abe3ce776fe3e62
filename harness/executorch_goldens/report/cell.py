"""The page of a cell that is not as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.quantities import (
    BETTER,
    OTHER,
    QUANTITIES,
    WORSE,
    may_be_better,
    measured,
    sqnr,
)
from executorch_goldens.goldens.reading import Reading, reading
from executorch_goldens.report import operators, passes, tensors
from executorch_goldens.report.gathering import Found, Gathered
from executorch_goldens.report.hunks import Hunk, hunks
from executorch_goldens.report.operators import Listing
from executorch_goldens.report.passes import Step
from executorch_goldens.report.tensors import Error, Shown
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.review import benign
from executorch_goldens.review.decisions import ACCEPTED
from executorch_goldens.review.groups import Group, Member

#: Places of a change whose text is shown.
MOST_HUNKS = 40


@dataclass(frozen=True)
class Quantity:
    """A quantity with a better direction, in the artifact before and after; None where one has none.

    Attributes
    ----------
    less
        The direction where it is not worse, see `executorch_goldens.goldens.quantities.may_be_better`.
    """

    what: str
    before: float | None
    after: float | None
    more_is_better: bool = False
    less: str = BETTER

    @property
    def direction(self) -> str:
        """``worse``, ``better``, ``different``, or empty where it stays or there is nothing to compare."""
        if self.before is None or self.after is None or self.before == self.after:
            return ""
        return WORSE if (self.after > self.before) is not self.more_is_better else self.less


@dataclass(frozen=True)
class Page:
    """The content of a cell's page.

    Attributes
    ----------
    labels
        The names of the two artifacts that it compares.
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

    found: Found
    group: Group | None
    evidence: Evidence
    labels: tuple[str, str]
    quantities: Sequence[Quantity] = ()
    listings: Sequence[Listing] = ()
    timeline: Sequence[Step] = ()
    hunks: Sequence[Hunk] = ()
    before: str = ""
    errors: Sequence[Error] = ()
    failing: Sequence[Shown] = ()
    tensors: Sequence[Shown] = ()
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
        shown = {self.evidence.diverging, self.evidence.follows, self.found.row["reason"], *self.changes}
        lines: list[str] = []
        # How a delegate differs, under the name of its text, is on the page with the operators around it.
        told = False
        for line in self.evidence.message:
            told = line.startswith("delegate_") or (told and line.startswith("  "))
            if not (told and self.hunks) and line.strip() not in shown:
                lines.append(line)
        return lines

    @property
    def pipelines(self) -> list[tuple[str, list[Step]]]:
        return passes.by_pipeline(self.timeline)

    @property
    def first(self) -> Step | None:
        """The first pass whose result is not the same."""
        return next((step for step in self.timeline if step.first), None)


def page(found: Found, group: Group | None, gathered: Gathered) -> Page:
    """Return the page of a cell with its cause; raise the errors of its evidence."""
    defect, rejected = gathered.defect(found), gathered.rejection(found)
    evidence = found.evidence()
    labels = found.labels(evidence)
    member = found.member
    errors = list(tensors.errors(evidence))
    departing = list(tensors.beyond_tolerance(evidence, found.sides[1]))
    if member is None or member.after is None:
        old = gathered.quantities(found)
        # Accepted proposals are goldens by now.
        now = old if found.kind == ACCEPTED else {}
        alone = [Quantity(words, old.get(key), now.get(key)) for key, words in QUANTITIES.items() if old]
        return Page(
            found,
            group,
            evidence,
            labels,
            quantities=alone,
            errors=errors,
            failing=departing,
            defect=defect,
            rejected=rejected,
        )
    listings = list(operators.listings(member.before, member.after))
    return Page(
        found,
        group,
        evidence,
        labels,
        quantities=_quantities(member.before, member.after),
        listings=listings,
        hunks=_hunks(evidence, listings),
        before=_numerics(member) if labels == found.sides else "",
        timeline=passes.timeline(member.before, member.after),
        errors=errors,
        defect=defect,
        rejected=rejected,
        failing=departing,
        tensors=list(tensors.constants(listings, labels, evidence)),
        changes=[edit.of_cell(detail) for edit, detail in member.edits.items()],
    )


def _numerics(member: Member) -> str:
    """Return the error of the golden as a run measured it, else the golden's own field."""
    had = benign.used_before(member.before)
    if had is not None:
        return f"error {benign.against(had)}"
    return golden.fields(member.before).get("numerics", "") if member.before is not None else ""


def _hunks(evidence: Evidence, listings: Sequence[Listing]) -> list[Hunk]:
    if len(evidence.after) > 1:
        one, *_, other = evidence.after.values()
        return list(hunks(one, other))
    return [hunk for listing in listings for hunk in listing.hunks()]


def _quantities(before: Texts | None, after: Texts) -> list[Quantity]:
    read = reading(before) if before is not None else Reading("no golden")
    now = reading(after)
    old, new = measured(read), measured(now)
    less = BETTER if may_be_better(read, now) else OTHER
    found = [
        Quantity(words, old.get(key), new.get(key), less=less)
        for key, words in QUANTITIES.items()
        if old or new
    ]
    ratios = Quantity(
        "dB of SQNR of the worst output: more is better", sqnr(read), sqnr(now), more_is_better=True
    )
    return [*found, ratios] if ratios.before is not None or ratios.after is not None else found
