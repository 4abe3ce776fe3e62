"""Decisions of a person in a review, group by group; other modules draw and write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from executorch_goldens.files.wording import count
from executorch_goldens.review import benign, listing
from executorch_goldens.review.doubt import doubt
from executorch_goldens.review.groups import BARRED, PENDING, Group, Member

#: The views that list the causes, and the cells of one.
OVERVIEW, CELLS = "causes", "cells"


@dataclass(frozen=True)
class Decisions:
    """The decisions and the current group; undo goes back to one.

    Attributes
    ----------
    accepted
        By the name of the proposal.
    rejected
        Reasons, by `Group.cause`.
    known
        Causes of these whose cells are declared as known defects.
    at, cell
        Numbers of the group and of its cell that are looked at.
    """

    accepted: Mapping[str, Member] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    at: int = 0
    cell: int = 0


class Session:
    """A review of `groups`; nothing is written by it.

    Parameters
    ----------
    before
        Reasons of earlier reviews, by `Group.cause`.

    Attributes
    ----------
    view
        The view of a cell: a key of `executorch_goldens.review.listing.VIEWS`; empty is the group's summary.
    message
        The result of the last key.
    last_reason
        The reason of the last rejection; empty without one.
    """

    def __init__(self, groups: Sequence[Group], before: Mapping[str, str]) -> None:
        self.groups = groups
        self.before = before
        self.decisions = Decisions()
        self.view = ""
        self.message = ""
        self.last_reason = next(reversed(list(before.values())), "")
        self._history: list[Decisions] = []
        #: Rendered views of cells, by name and view: the screen is drawn at every key.
        self._drawn: dict[tuple[str, str], list[str]] = {}

    @property
    def group(self) -> Group:
        return self.groups[self.decisions.at]

    @property
    def member(self) -> Member:
        """The cell that is looked at; the specimen comes first."""
        return self.members()[self.decisions.cell]

    def members(self) -> list[Member]:
        """Return the cells of the group, the specimens first."""
        first = self.group.specimens
        return [*first, *(member for member in self.group.members if member not in first)]

    # Actions of keys

    @property
    def doubt(self) -> str:
        """The doubt to confirm before cells of the group are accepted; empty where there is none."""
        return doubt(self.group) if self.group.state == PENDING else ""

    def accept_group(self, although: bool = False) -> None:
        """Accept every cell of the group that can be, and go on to the next.

        Parameters
        ----------
        although
            Whether the person has affirmed what `doubt` says.
        """
        if self._acceptable(although):
            cells = self.group.recordable
            self._say(f"accepted: {count(len(cells), 'cell')}", accepted=self._with(cells))
            self.next_group()

    def accept_cell(self, although: bool = False) -> None:
        """Accept the cell that is looked at, and go on to the next that can be and is not accepted."""
        if not self._acceptable(although):
            return
        if self.member.state != PENDING:
            self.message = f"not accepted: this cell is {self.member.proposal.verdict}"
            return
        self._say(f"accepted: {self.member.proposal.name}", accepted=self._with([self.member]))
        left = [
            place
            for place, member in enumerate(self.members())
            if member.state == PENDING and member.proposal.name not in self.decisions.accepted
        ]
        if left:
            self.decisions = replace(self.decisions, cell=left[0])
        else:
            self.next_group()

    def reject(self, reason: str, known: bool = False) -> None:
        """Reject the group with a reason, undo its acceptance, and go on to the next.

        Parameters
        ----------
        known
            Whether its cells are to be declared as known defects.
        """
        if not reason.strip():
            self.message = "not rejected: type a reason"
            return
        if known and all(member.state != BARRED for member in self.group.members):
            self.message = "not declared: its cells are right, and differ from their goldens"
            return
        self.last_reason = reason.strip()
        names = {member.proposal.name for member in self.group.members}
        accepted = {name: member for name, member in self.decisions.accepted.items() if name not in names}
        rejected = {**self.decisions.rejected, self.group.cause: reason.strip()}
        self._say(f"rejected: {reason.strip()}", accepted=accepted, rejected=rejected)
        others = self.decisions.known - {self.group.cause}
        self.decisions = replace(self.decisions, known=others | {self.group.cause} if known else others)
        self.next_group()

    def skip(self) -> None:
        """Leave the group as it is, and go on to the next."""
        self.message = "skipped"
        self.next_group()

    def next_group(self, step: int = 1) -> None:
        """Look at the next group, or at one before; at either end it stays where it is."""
        place = min(max(self.decisions.at + step, 0), len(self.groups) - 1)
        self.decisions = replace(self.decisions, at=place, cell=0)
        self.view = ""

    def next_cell(self, step: int = 1) -> None:
        """Look at the next cell of the group, round and round."""
        self.decisions = replace(self.decisions, cell=(self.decisions.cell + step) % len(self.group.members))

    def show(self, view: str) -> None:
        """Show something of the cell, or the summary where that is shown already."""
        self.view = "" if self.view == view else view

    def undo(self) -> None:
        """Undo the last decision, and show its group."""
        if self._history:
            self.decisions = self._history.pop()
            self.view, self.message = "", "taken back"
        else:
            self.message = "nothing to take back"

    def _acceptable(self, although: bool) -> bool:
        if self.group.state == PENDING:
            if self.doubt and not although:
                self.message = f"not accepted: {self.doubt}"
                return False
            return True
        self.message = f"not accepted: {listing.STATE_WORDS[self.group.state]}"
        return False

    def _with(self, members: Sequence[Member]) -> Mapping[str, Member]:
        return {**self.decisions.accepted, **{member.proposal.name: member for member in members}}

    def _say(
        self, message: str, accepted: Mapping[str, Member], rejected: Mapping[str, str] | None = None
    ) -> None:
        self._history.append(self.decisions)
        kept = self.decisions.rejected if rejected is None else rejected
        if rejected is None:
            # Whoever accepts a cause no longer rejects it.
            kept = {cause: reason for cause, reason in kept.items() if cause != self.group.cause}
        self.decisions = replace(
            self.decisions, accepted=accepted, rejected=kept, known=self.decisions.known.intersection(kept)
        )
        self.message = message

    # Decisions

    @property
    def decided(self) -> bool:
        """True if every group that can be accepted is accepted whole or rejected."""
        return all(
            self.decision(group) in ("accepted", "rejected")
            for group in self.groups
            if group.state == PENDING
        )

    @property
    def has_decisions(self) -> bool:
        return bool(self.decisions.accepted or self.decisions.rejected)

    def decision(self, group: Group) -> str:
        """Return the decision about a group: ``accepted``, ``rejected``, with its extent, or empty."""
        if group.cause in self.decisions.rejected:
            return "rejected"
        cells = sum(member.proposal.name in self.decisions.accepted for member in group.members)
        if cells == len(group.recordable):
            return "accepted"
        return f"{cells} of {len(group.recordable)} accepted" if cells else ""

    # Views

    def title(self) -> str:
        """Return the head of the screen: the group and its decision."""
        decision = self.decision(self.group)
        suffix = f"  [{decision}]" if decision else ""
        return f"{self.decisions.at + 1}/{len(self.groups)}  {self.group.head}{suffix}"

    def overview(self) -> Iterator[str]:
        """Yield how many causes are decided, and every cause with its counts and decision."""
        decisions = [self.decision(group) for group in self.groups]
        counted = Counter("open" if "of" in each.split() else each or "open" for each in decisions)
        yield ", ".join(f"{counted[word]} {word}" for word in ("accepted", "rejected", "open"))
        yield ""
        for number, (group, decision) in enumerate(zip(self.groups, decisions, strict=True)):
            mark = ">" if number == self.decisions.at else " "
            yield f"{mark} {number + 1}  {group.head}{f'  [{decision}]' if decision else ''}"

    def lines(self) -> Iterator[str]:
        """Yield the lines below it."""
        if self.view == OVERVIEW:
            yield from self.overview()
            return
        if self.view == CELLS:
            yield from listing.cells(self.group, self.decisions.accepted)
            return
        if self.group.state != PENDING:
            yield listing.STATE_WORDS[self.group.state]
        if not self.view:
            yield from listing.facts(self.group, {**self.before, **self.decisions.rejected})
            yield ""
        accepted = "  [accepted]" if self.member.proposal.name in self.decisions.accepted else ""
        which = f"cell {self.decisions.cell + 1} of {len(self.group.members)}"
        yield f"{self.member.proposal.name} ({which}){f', {self.view}' if self.view else ''}:{accepted}"
        if not self.view and (error := benign.shown(self.member.proposal, self.member.before)):
            yield f"  {self.member.proposal.verdict}, {error}"
        yield from (f"  {line}" for line in self._shown(self.member) or ["no difference"])

    def _shown(self, member: Member) -> list[str]:
        key = (member.proposal.name, self.view)
        if key not in self._drawn:
            view = listing.VIEWS.get(self.view, listing.difference)
            self._drawn[key] = list(view(member))
        return self._drawn[key]

    def conclusion(self) -> Iterator[str]:
        """Yield the question before anything is written."""
        groups = [group for group in self.groups if self.decision(group)]
        for group in groups:
            yield f"{self.decision(group)}: {group.head}"
            if reason := self.decisions.rejected.get(group.cause):
                yield f"  {'known defect: ' if group.cause in self.decisions.known else ''}{reason}"
        yield ""
        releases = {member.proposal.release for member in self.decisions.accepted.values()}
        written = f"{count(len(self.decisions.accepted), 'golden')} of {count(len(releases), 'release')}"
        yield f"write {written}, and keep {count(len(self.decisions.rejected), 'reason')}?"
