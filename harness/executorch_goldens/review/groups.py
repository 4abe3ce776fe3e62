"""Groups proposals by cause: the same edit, made by the same pass, on whichever cells, targets and releases."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import GoldenError, Texts
from executorch_goldens.judging.verdict import DISAGREEING
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.review.edits import Edit, Quantities, edits, quantities
from executorch_goldens.review.standing import Standing

#: What may be done about a group: it may be accepted, its cells have to be run again, it may not be recorded.
PENDING, OUTDATED, BARRED = "pending", "out of date", "barred"
#: Hexadecimal digits of a group's name and of a cause's.
DIGITS = 8
#: How a title ends where no pass made the difference, by stage of an export (`executorch_goldens.exporting.export`).
STAGES = {
    "exported": "in torch.export",
    "quantized": "in quantization",
    "edge": "in the edge program",
    "delegate": "in serialization",
    "lowered": "in lowering",
    "pte": "in emission",
}
#: Edits that a title names.
SHOWN_EDITS = 3
#: A quantity that is this many times what most cells of a group show is unlike them.
UNLIKE = 4.0
#: Fewer cells than this do not make one of them unlike the others.
FEWEST = 3


@dataclass(frozen=True)
class Member:
    """A cell of a group.

    Attributes
    ----------
    before
        Its golden; None where there is none. Of variations that disagree, what the first of them made.
    after
        The golden-to-be, or what its exports made; None where they left nothing.
    edits
        How these differ, with what this cell shows of each.
    objection
        Why it cannot be recorded as things stand; empty if it can.
    """

    proposal: Proposal
    before: Texts | None
    after: Texts | None
    edits: Mapping[Edit, str]
    quantities: Quantities
    objection: str

    @property
    def state(self) -> str:
        if self.proposal.content is None:
            return BARRED
        return OUTDATED if self.objection else PENDING

    @property
    def size(self) -> int:
        """How much there is to read of it."""
        return sum(map(len, (self.after or {}).values()))


@dataclass(frozen=True)
class Group:
    """Cells that changed alike.

    Attributes
    ----------
    state
        `PENDING`, `OUTDATED` or `BARRED`.
    members
        The one with the least to read first: it is the specimen.
    unlike
        What of them is not as in the others, by member.
    """

    state: str
    members: tuple[Member, ...]
    unlike: Mapping[str, str]

    @property
    def specimen(self) -> Member:
        return next((each for each in self.members if each.proposal.name not in self.unlike), self.members[0])

    @property
    def name(self) -> str:
        """What `--accept` names it by: a digest of all that was proposed and of what it would replace."""
        return _digest([_contents(member.proposal) for member in self.members])

    @property
    def cause(self) -> str:
        """A digest of why, whichever cells show it: what a rejection is kept under."""
        first = self.members[0]
        why = sorted(map(str, first.edits)) or [_general(first.proposal.reason)]
        return _digest(
            [first.proposal.verdict if self.state == BARRED else "", _place(first.proposal.blamed), why]
        )

    @property
    def title(self) -> str:
        """What changed and which pass made it."""
        first = self.members[0]
        proposal = first.proposal
        named = [str(edit) for edit in sorted(first.edits, key=lambda edit: edit.place)]
        more = f" and {len(named) - SHOWN_EDITS} more" if len(named) > SHOWN_EDITS else ""
        what = "; ".join(named[:SHOWN_EDITS]) + more or _general(proposal.reason)
        what = f"{proposal.verdict}: {what}" if self.state == BARRED else what
        return f"{what} {_place(proposal.blamed)}".rstrip()

    @property
    def extent(self) -> str:
        """How many cells of how many releases."""
        releases = {member.proposal.release for member in self.members}
        return f"{count(len(self.members), 'cell')}, {count(len(releases), 'release')}"

    def amounts(self) -> Iterator[str]:
        """Yield how much more or less there is over all members, by operator, and in bytes."""
        total: Counter[str] = Counter()
        for member in self.members:
            for name, more in member.quantities.operators.items():
                total[name] += more
        if any(total.values()):
            yield "operators: " + ", ".join(f"{name} {more:+d}" for name, more in total.items() if more)
        yield from _bytes(".pte", [member.quantities.program for member in self.members])
        yield from _bytes("constants", [member.quantities.constants for member in self.members])


def _bytes(what: str, more: Sequence[int]) -> Iterator[str]:
    """Yield how many bytes more or less there are, and in how many cells; nothing where none has another number.

    >>> list(_bytes(".pte", [4096, -512, -512])), list(_bytes(".pte", [0]))
    (['.pte: +3,072 bytes (1 grows, 2 shrink)'], [])
    """
    grow, shrink = sum(each > 0 for each in more), sum(each < 0 for each in more)
    ways = ((grow, "grow" if grow > 1 else "grows"), (shrink, "shrink" if shrink > 1 else "shrinks"))
    if shown := ", ".join(f"{number} {way}" for number, way in ways if number):
        yield f"{what}: {sum(more):+,d} bytes ({shown})"


def count(number: int, of: str) -> str:
    """Return a number with its noun.

    >>> count(1, "cell"), count(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{number} {of}{'s' if number != 1 else ''}"


def grouped(proposals: Iterable[Proposal], goldens: Path, standing: Standing) -> list[Group]:
    """Return the groups, those to decide on first, those of most cells first; what is recorded already is in none."""
    found: dict[object, list[Member]] = defaultdict(list)
    for proposal in proposals:
        member = _member(proposal, goldens, standing)
        if member.before is not None and golden.digest(member.before) == proposal.content:
            # A review has recorded it, and was interrupted before it could delete what was proposed.
            continue
        why = frozenset(map(str, member.edits)) or _general(proposal.reason)
        verdict = proposal.verdict if member.state == BARRED else ""
        found[member.state, verdict, _place(proposal.blamed), why].append(member)
    groups = []
    for members in found.values():
        members.sort(key=lambda member: (member.size, member.proposal.name))
        groups.append(Group(members[0].state, tuple(members), dict(_unlike(members))))
    order = (PENDING, OUTDATED, BARRED)
    return sorted(groups, key=lambda group: (order.index(group.state), -len(group.members), group.title))


def _member(proposal: Proposal, goldens: Path, standing: Standing) -> Member:
    before, after = _sides(proposal, goldens)
    compared = after is not None and (before is not None or proposal.content is not None)
    return Member(
        proposal,
        before,
        after,
        edits(before, after) if compared and after is not None else {},
        quantities(before, after) if compared and after is not None else Quantities(),
        standing.objection(proposal) if proposal.content is not None else "",
    )


def _sides(proposal: Proposal, goldens: Path) -> tuple[Texts | None, Texts | None]:
    """Return what a cell is compared with, and what was made of it."""
    made = proposal.made() if proposal.content is None else [proposal.texts()]
    if proposal.verdict in DISAGREEING:
        return (made[0], made[1]) if len(made) > 1 else (None, None)
    before: Texts | None = None
    with contextlib.suppress(GoldenError):
        before = golden.read(golden.directory(goldens / proposal.release, proposal.cell))
    return before, made[0] if made else None


def _unlike(members: Sequence[Member]) -> Iterator[tuple[str, str]]:
    """Yield the members that show the edits of their group in another direction, far more, or with other values."""
    if len(members) < FEWEST:
        return
    usual = {
        edit: Counter(member.edits[edit] for member in members).most_common(1)[0] for edit in members[0].edits
    }
    for member in members:
        why = [
            f"{edit.what}: {member.edits[edit]}, not {most}"
            for edit, (most, times) in usual.items()
            if edit.kind == "attributes" and 2 * times > len(members) and member.edits[edit] != most
        ]
        why += _far(member, members)
        if why:
            yield member.proposal.name, "; ".join(why)


def _far(member: Member, members: Sequence[Member]) -> Iterator[str]:
    for what in ("operators", ".pte bytes", "bytes of constants"):
        middle = statistics.median(_amount(what, each) for each in members)
        mine = _amount(what, member)
        if mine * middle < 0 or (middle and abs(mine) > UNLIKE * abs(middle)):
            yield f"{what} {mine:+,d} where the median is {middle:+,g}"


def _amount(what: str, member: Member) -> int:
    more = member.quantities
    if what == "operators":
        return sum(more.operators.values())
    return more.program if what == ".pte bytes" else more.constants


def _place(blamed: str | None) -> str:
    """Return where a difference was made, as a title ends."""
    if blamed is None:
        return ""
    stage = re.sub(r"_\d+$", "", blamed)
    return STAGES.get(stage, f"after {blamed}")


def _general(reason: str) -> str:
    """Return a reason without what is one cell's own: variations, numbers and the numbers of names."""
    return re.sub(r"-?\d[\d.,]*(e-?\d+)?", "…", re.sub(r"^seed\d+-heap\d+: ", "", reason))


def _contents(proposal: Proposal) -> list[str | None]:
    return [proposal.name, proposal.verdict, proposal.content, proposal.replaces]


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:DIGITS]
