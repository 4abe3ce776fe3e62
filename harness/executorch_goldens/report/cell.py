"""The page of a cell that is not as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import DELEGATE
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.quantities import measured, sqnr
from executorch_goldens.goldens.reading import Reading, reading
from executorch_goldens.report import operators, passes, tensors
from executorch_goldens.report.drawing import Drawing, drawing
from executorch_goldens.report.gathering import GOLDEN, NOW, Found
from executorch_goldens.report.operators import REMOVED, Listing, Row
from executorch_goldens.report.passes import Step
from executorch_goldens.report.tensors import Error, Shown
from executorch_goldens.results import origins
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.origins import Origins
from executorch_goldens.review.groups import Group, Member
from executorch_goldens.settings.config import QUANTITIES


@dataclass(frozen=True)
class Quantity:
    """A quantity of which less is better, or more, in the artifact before and after; None where one has none."""

    what: str
    before: float | None
    after: float | None
    more_is_better: bool = False

    @property
    def direction(self) -> str:
        """``worse``, ``better``, or empty where it stays or there is nothing to compare."""
        if self.before is None or self.after is None or self.before == self.after:
            return ""
        return "worse" if (self.after > self.before) is not self.more_is_better else "better"


@dataclass(frozen=True)
class Page:
    """What the page of a cell shows.

    Attributes
    ----------
    labels
        What the two artifacts are called that it compares.
    drawings
        Each with what it is of.
    changes
        How the artifacts differ, of the kinds that a review knows.
    origins
        Of the second artifact; None where the run has not recorded them.
    """

    found: Found
    group: Group | None
    evidence: Evidence
    labels: tuple[str, str]
    quantities: Sequence[Quantity] = ()
    drawings: Sequence[tuple[str, Drawing]] = ()
    listings: Sequence[Listing] = ()
    timeline: Sequence[Step] = ()
    errors: Sequence[Error] = ()
    tensors: Sequence[Shown] = ()
    changes: Sequence[str] = ()
    origins: Origins | None = None

    def origin(self, listing: Listing, row: Row) -> str:
        """Return what made an operator of the second artifact, and what converted it; empty where it is not known."""
        if self.origins is None or row.state == REMOVED:
            return ""
        _, _, value = row.label.partition(" ")
        return self.origins.of(int(listing.delegate.removeprefix(DELEGATE)), value)

    @property
    def directed(self) -> bool:
        """Whether more than in the first artifact is worse: it is the golden."""
        return self.labels == (GOLDEN, NOW)

    @property
    def pipelines(self) -> list[tuple[str, list[Step]]]:
        return passes.by_pipeline(self.timeline)

    @property
    def first(self) -> Step | None:
        """The first pass whose result is not the same."""
        return next((step for step in self.timeline if step.first), None)


def page(found: Found, group: Group | None) -> Page:
    """Return the page of a cell; raise the errors of its evidence and origins."""
    evidence = found.evidence()
    labels = found.labels(evidence)
    member = found.member
    errors = list(tensors.errors(evidence))
    departing = list(tensors.beyond_tolerance(evidence))
    if member is None or member.after is None:
        return Page(found, group, evidence, labels, errors=errors, tensors=departing)
    listings = list(operators.listings(member.before, member.after))
    return Page(
        found,
        group,
        evidence,
        labels,
        quantities=_quantities(member.before, member.after),
        drawings=_drawings(member, labels, listings),
        listings=listings,
        timeline=passes.timeline(member.before, member.after),
        errors=errors,
        tensors=[*departing, *tensors.constants(member.before, member.after, labels, evidence)],
        origins=origins.read(found.folder, "" if labels == (GOLDEN, NOW) else labels[1]),
        changes=[str(edit) + (f": {of_cell}" if of_cell else "") for edit, of_cell in member.edits.items()],
    )


def _quantities(before: Texts | None, after: Texts) -> list[Quantity]:
    read = reading(before) if before is not None else Reading("no golden")
    now = reading(after)
    old, new = measured(read), measured(now)
    found = [Quantity(words, old.get(key), new.get(key)) for key, words in QUANTITIES.items() if old or new]
    ratios = Quantity(
        "dB of SQNR of the worst output: more is better", sqnr(read), sqnr(now), more_is_better=True
    )
    return [*found, ratios] if ratios.before is not None or ratios.after is not None else found


def _drawings(
    member: Member, labels: tuple[str, str], listings: Sequence[Listing]
) -> list[tuple[str, Drawing]]:
    """Draw what was made; the other artifact as well where neither is the right one, or this one does not lower."""
    assert member.after is not None
    drawn = [(labels[1], drawing(member.after, operators.changed_labels(listings)))]
    if member.before is not None and (labels != (GOLDEN, NOW) or golden.GRAPH not in member.after):
        drawn.insert(0, (labels[0], drawing(member.before, {})))
    return [(label, picture) for label, picture in drawn if picture is not None]
