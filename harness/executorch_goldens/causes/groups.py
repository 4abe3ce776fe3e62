"""Groups proposals by cause: one kind of edit by one pass, on whichever cells, targets, releases and verdicts."""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens.causes.standing import Standing
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.edits import ATTRIBUTES, KINDS, NEW, TEXT, Edit, NamesAlone, NewCell
from executorch_goldens.diff.likeness import RENAMED
from executorch_goldens.diff.quantities import Quantities
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import accuracy, golden
from executorch_goldens.goldens.decisions import Missing
from executorch_goldens.goldens.findings import Key, LostSignal, begins
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.quantities import sqnr
from executorch_goldens.goldens.record import MODEL, Record
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.judging.verdict import DISAGREEING, UNEXPECTED, Doubt
from executorch_goldens.results.merging import PartialResults
from executorch_goldens.results.proposals import Proposal, find
from executorch_goldens.words import errors
from executorch_goldens.words import findings as words
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED
from executorch_goldens.zoo.targets import TARGETS

#: Choices about a group: it may be accepted; it may be with an option by which a person decides something as
#: well; its cells have to run again; it may not be recorded.
STATES = PENDING, UNDECIDED, OUTDATED, BARRED = ("pending", "undecided", "out of date", "barred")
#: Hexadecimal digits of a group's name and of a cause's.
DIGITS = 8
#: Endings of titles where no pass made the difference, by stage of an export (`executorch_goldens.exporting.recipe`).
STAGES = {
    "exported": "in torch.export",
    "quantized": "in quantization",
    "edge": "in the edge program",
    "delegate": "in serialization",
    "lowered": "in lowering",
    "pte": "in emission",
    # The title names its weights.
    MODEL: "",
}
#: Edits that a title names.
SHOWN_EDITS = 3
#: Verdicts of artifacts that are no worse than different: a person may leave them.
DECIDED = ("changed", "renamed", "new", "failed", "over-budget", UNEXPECTED)
#: A quantity that is this many times what most cells of a group show is unlike them.
UNLIKE = 4.0
#: Fewer cells than this do not make one of them unlike the others.
FEWEST = 3
#: Quantities of a member that are compared with the median of its group, by their names.
AMOUNTS: Mapping[str, Callable[[Quantities], int]] = {
    "operators": lambda more: sum(more.operators.values()),
    ".pte bytes": lambda more: more.program,
    "bytes of constants": lambda more: more.constants,
}


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
        Their differences, each once.
    objection
        Why it cannot be recorded now; empty if it can.
    proposed
        The golden-to-be as it would be recorded; None for what may not be.
    recorded
        Whether that is among the goldens already.
    undecided
        Why recording it needs a person's decision; None where it needs none.
    size
        The amount of text to read, in characters.
    damage
        Why its golden cannot be read, and the way out; empty where it can, or there is none.
    labels
        What messages call `before` and `after`.
    """

    proposal: Proposal
    before: Record | None
    after: Record | None
    edits: tuple[Edit, ...]
    quantities: Quantities
    objection: str = ""
    proposed: Record | None = None
    recorded: bool = False
    undecided: Missing | Fewer | None = None
    size: int = 0
    damage: str = ""
    labels: Labels = OF_RUN

    @property
    def state(self) -> str:
        if self.proposal.content is None:
            return BARRED
        if self.objection or self.damage:
            return OUTDATED
        return UNDECIDED if self.undecided else PENDING

    @property
    def names_alone(self) -> NamesAlone | None:
        """That names alone differ, whichever pass gave them; None where more does."""
        return next((edit for edit in self.edits if isinstance(edit, NamesAlone)), None)

    @property
    def wrong(self) -> bool:
        """True if the cell is wrong or does not repeat, so that it may not be recorded."""
        return self.proposal.verdict not in DECIDED

    @property
    def error(self) -> float:
        """The error of a wrong cell in multiples of its tolerance, infinity where it gives no number; of others 0."""
        if not self.wrong:
            return 0.0
        wrong = math.inf if self.proposal.verdict == "corrupt" else 0.0
        return self.used if self.used is not None else wrong

    @property
    def has_wrong_values(self) -> bool:
        return self.proposal.verdict == "corrupt" and (self.used or 0.0) > 1.0

    @property
    def used(self) -> float | None:
        """The part of its tolerance that the error takes; None where nothing was measured."""
        return self.proposal.accuracy.used if self.proposal.accuracy is not None else None

    @property
    def used_before(self) -> float | None:
        """The part of its tolerance that the error of the golden took; None where that does not say."""
        if self.before is None:
            return None
        # A program whose outputs have to be eager's has no error.
        checked = self.before.numerics
        return 0.0 if checked is not None and checked.equal else self.before.error

    @property
    def growth(self) -> float:
        """The part of its tolerance by which the error grew; 0 where it did not, or is not known."""
        if self.used is None or self.used_before is None:
            return 0.0
        return max(0.0, accuracy.as_recorded(self.used) - self.used_before)

    @property
    def error_words(self) -> str:
        """The error against eager, before and after, as parts of its tolerance; empty where not measured."""
        if self.used is None:
            return ""
        had = self.used_before
        old = f"{errors.multiple(had)} -> " if had is not None else ""
        return f"error {old}{errors.against(self.used)}"

    @property
    def ratios(self) -> tuple[float | None, float | None]:
        """SQNR against the float model, of its golden and now, in dB; None where it is not known."""
        now = self.proposal.accuracy.sqnr if self.proposal.accuracy is not None else None
        return (sqnr(self.before) if self.before is not None and now is not None else None), now

    @property
    def fewer_variations(self) -> tuple[int, int] | None:
        """How many variations agree on its golden and on the golden-to-be, if these are fewer."""
        if self.before is None or self.after is None:
            return None
        before, now = len(self.before.variations), len(self.after.variations)
        return (before, now) if now < before else None


@dataclass(frozen=True)
class Group:
    """Cells of one cause.

    Attributes
    ----------
    members
        The cells, the one with the least to read first.
    unlike
        Differences of single members from the others, by member.
    """

    members: tuple[Member, ...]
    unlike: Mapping[str, str]

    @property
    def state(self) -> str:
        """The first of the states that one of its cells is in."""
        states = {member.state for member in self.members}
        return next(state for state in STATES if state in states)

    @property
    def recordable(self) -> tuple[Member, ...]:
        """The cells that accepting it is about: those in its `state`."""
        return tuple(member for member in self.members if member.state == self.state)

    @property
    def wrong(self) -> tuple[Member, ...]:
        """The cells that show that the cause makes something wrong, or not always the same."""
        return tuple(member for member in self.members if member.wrong)

    @property
    def blames_case(self) -> bool:
        """True if it is a mistake in the repository's own files, which is corrected and not rejected."""
        return self.members[0].proposal.blames_case

    @property
    def proof(self) -> str:
        """The result of an export without the pass, with its cell; empty where there is none."""
        found = (member.proposal for member in self.members if member.proposal.proof)
        return next((f"{proposal.proof} ({proposal.cell})" for proposal in found), "")

    @property
    def doubt(self) -> Doubt | None:
        """The cells that it makes wrong, beside those that could be recorded; None where it makes none.

        A change that is harmless on the samples of one cell may be the one that is wrong in the next.
        """
        if not self.wrong or self.state not in (PENDING, UNDECIDED):
            return None
        return Doubt(tuple((member.proposal.cell, member.proposal.verdict) for member in self.wrong))

    @property
    def specimen(self) -> Member:
        """The wrong one with the largest error; else the one with the least to read that is not unlike the others."""
        usual = [each for each in self.members if each.proposal.name not in self.unlike]
        # Of equal errors, one that is like the others.
        wrong = [each for each in (*usual, *self.members) if each.wrong]
        return max(wrong, key=lambda each: each.error, default=(usual or self.members)[0])

    @property
    def specimens(self) -> tuple[Member, ...]:
        """The cells to look at: that with the least to read, that with the largest error, one unlike the others."""
        measured = [member for member in self.members if member.used is not None]
        largest = max(measured, key=lambda member: member.used or 0.0, default=self.specimen)
        odd = [member for member in self.members if member.proposal.name in self.unlike][:1]
        return tuple({member.proposal.name: member for member in (self.specimen, largest, *odd)}.values())

    @property
    def name(self) -> str:
        """Its name for `--accept`: a digest of all proposals and of the goldens that they would replace."""
        return _digest([_contents(member.proposal) for member in self.members])

    @property
    def cause(self) -> str:
        """A digest of the reason, whichever cells show it: the key of a rejection."""
        return _digest(_key(self.members[0]))

    @property
    def title(self) -> str:
        """The pass, and what it changed."""
        first = self.members[0]
        if (renamed := self.specimen.names_alone) is not None:
            cells = f"{count(len(self.members), 'cell')}, as " if len(self.members) > 1 else ""
            return f"{renamed}: {cells}{renamed.detail}"
        proposal = first.proposal
        what = "; ".join(self._named()) or _reason(self.specimen)
        if not first.edits or proposal.verdict in DISAGREEING:
            what = f"{proposal.verdict}: {what}"
        if not _is_pass(proposal.blamed):
            return f"{what} {_place(proposal.blamed)}".rstrip()
        return f"{proposal.blamed} ({', '.join(sorted(set(map(_backend, self.members))))}): {what}"

    def _named(self) -> Iterator[str]:
        """Yield the edits that most cells show, without the operators that they are of, and how many more there are."""
        found: dict[Edit, list[Edit]] = defaultdict(list)
        kinds = _class(self.members[0])
        for edit in (edit for member in self.members for edit in member.edits if edit.kind in kinds):
            found[edit.of_any_operator()].append(edit)
        named = sorted(found.values(), key=lambda alike: (-len(alike), alike[0].title))
        yield from (_usual(alike)[0].title for alike in named[:SHOWN_EDITS])
        if len(named) > SHOWN_EDITS:
            yield f"{len(named) - SHOWN_EDITS} more"

    @property
    def counts(self) -> str:
        """The number of cells by verdict, wrong ones first: ``8 corrupt, 5 changed``."""
        number = Counter(member.proposal.verdict for member in self.members)
        ordered = sorted(number, key=lambda verdict: (verdict in DECIDED, -number[verdict], verdict))
        return ", ".join(f"{number[verdict]} {verdict}" for verdict in ordered)

    @property
    def head(self) -> str:
        """Its title with its counts."""
        return f"{self.title.removesuffix('.')}; {self.counts}"

    @property
    def extent(self) -> str:
        """The number of cells and of releases."""
        releases = {member.proposal.release for member in self.members}
        return f"{count(len(self.members), 'cell')}, {count(len(releases), 'release')}"

    def amounts(self) -> Iterator[str]:
        """Yield how far values moved over all members, and how much more there is, by operator and in bytes."""
        yield from _weights([each for each in self.members if each.proposal.verdict not in DISAGREEING])
        total: Counter[str] = Counter()
        for member in self.members:
            for name, more in member.quantities.operators.items():
                total[name] += more
        if any(total.values()):
            yield "operators: " + ", ".join(f"{name} {more:+d}" for name, more in total.items() if more)
        yield from _bytes(".pte", [member.quantities.program for member in self.members])
        yield from _bytes("constants", [member.quantities.constants for member in self.members])


@dataclass(frozen=True)
class EditedCell:
    """The difference of one cell from its golden.

    Attributes
    ----------
    what
        The difference in words; empty where nothing is compared.
    """

    cause: str
    what: str

    @classmethod
    def from_member(cls, member: Member) -> EditedCell:
        alone = Group((member,), {})
        return cls(alone.cause, alone.title if member.edits else "")


def _bytes(what: str, more: Sequence[int]) -> Iterator[str]:
    """Yield how many bytes more or less there are, and in how many cells; nothing where none has another number.

    >>> list(_bytes(".pte", [4096, -512, -512])), list(_bytes(".pte", [0]))
    (['.pte: +3,072 bytes (1 grows, 2 shrink)'], [])
    """
    grow, shrink = sum(each > 0 for each in more), sum(each < 0 for each in more)
    ways = ((grow, "grow" if grow > 1 else "grows"), (shrink, "shrink" if shrink > 1 else "shrinks"))
    if shown := ", ".join(f"{number} {way}" for number, way in ways if number):
        yield f"{what}: {sum(more):+,d} bytes ({shown})"


def grouped(members: Iterable[Member]) -> list[Group]:
    """Return the groups as `worst_first`; recorded cells are in none."""
    found: dict[object, list[Member]] = defaultdict(list)
    for member in members:
        # A review has recorded one, and was interrupted before it could delete what was proposed.
        if not member.recorded:
            found[_key(member)].append(member)
    groups = []
    for alike in found.values():
        alike.sort(key=lambda member: (member.size, member.proposal.name))
        groups.append(Group(tuple(alike), dict(_unlike(alike))))
    return worst_first(groups)


def worst_first(groups: Iterable[Group]) -> list[Group]:
    """Return groups in the order in which they are named: largest error first, then most wrong cells, then most."""
    return sorted(
        groups,
        key=lambda group: (-group.specimen.error, -len(group.wrong), -len(group.members), group.title),
    )


def _key(member: Member) -> tuple[object, ...]:
    """Return the common part of the cells of one cause: the pass and the kind of edit.

    Where no pass made it, and between variations that disagree, also what was edited. Where names alone differ, that
    is the cause. Where nothing differs from a golden and values are wrong, it is the place where they begin to be, and
    where quantization loses them, what it loses most by: a cell of which that is not known has a cause of its own.
    """
    if member.names_alone is not None:
        return (RENAMED,)
    proposal = member.proposal
    place = proposal.blamed if _is_pass(proposal.blamed) else _place(proposal.blamed)
    if not member.edits:
        return place or "", proposal.verdict, json.dumps(_cause(member), sort_keys=True)
    kind = _class(member)
    disagreeing = proposal.verdict if proposal.verdict in DISAGREEING else ""
    if _is_pass(proposal.blamed) and not disagreeing:
        return place or "", *kind
    edited = sorted({edit.of_any_operator().key for edit in member.edits if edit.kind in kind})
    lost = (proposal.found.by,) if isinstance(proposal.found, LostSignal) else ()
    return place or "", disagreeing, *kind, *edited, *lost


def _cause(member: Member) -> Key:
    """Return why a cell is as it is, without parts that are its own: of wrong values, where they begin."""
    proposal = member.proposal
    if isinstance(proposal.found, LostSignal):
        # What loses the signal is not always known.
        return {"by": proposal.found.by or str(proposal.cell)}
    if not member.has_wrong_values:
        return proposal.found.key()
    return begins(proposal.findings) or {"in": str(proposal.cell)}


def _reason(member: Member) -> str:
    """Return the same in words, with the numbers of a cell."""
    proposal = member.proposal
    if member.has_wrong_values:
        if where := begins(proposal.findings):
            return f"wrong values begin {words.begins(where)}"
        return f"wrong values in {proposal.cell}; where they begin is not known"
    reason = words.title(proposal.found, proposal.target, member.labels)
    loses = proposal.found.by if isinstance(proposal.found, LostSignal) else ""
    return "; ".join(filter(None, (reason, loses)))


def _is_pass(blamed: str | None) -> bool:
    return blamed is not None and _stage(blamed) not in STAGES


def _class(member: Member) -> tuple[str, ...]:
    """Return the kinds of the first place among the edits of a cell (`changes.EditKind`)."""
    first = min((KINDS[edit.kind].cause for edit in member.edits), default=None)
    return tuple(kind for kind, each in KINDS.items() if each.cause == first)


def _usual(alike: Sequence[Edit]) -> tuple[Edit, int]:
    """Return the one of some equal differences whose own values most of them have, and how many do."""
    own, times = Counter(edit.own for edit in alike).most_common(1)[0]
    return next(edit for edit in alike if edit.own == own), times


def _backend(member: Member) -> str:
    """Return the backend of a cell as people write it."""
    target = member.proposal.target
    return (TARGETS[target].backend if target in TARGETS else target).upper()


def read_members(
    proposals: Iterable[Proposal],
    goldens: Path,
    standing: Standing | None = None,
    labels: Labels = OF_RUN,
) -> Iterator[Member]:
    """Yield how the cells of proposals differ from their goldens; without `standing`, not whether they are current.

    Raises
    ------
    executorch_goldens.results.proposals.ProposalError
        For files that are damaged.
    """
    for proposal in proposals:
        reviewed, damage = None, ""
        try:
            reviewed = golden.read(golden.file_of(goldens / proposal.release, proposal.cell))
        except GoldenError as error:
            damage = str(error)
        proposed = proposal.proposed() if proposal.content is not None else None
        made = proposal.made() if proposed is None or proposal.verdict in DISAGREEING else ()
        found = member(proposal, reviewed, proposed, made, damage, labels=labels)
        yield current(found, standing) if standing is not None else found


def members(
    parts: Sequence[PartialResults],
    goldens: Path,
    standing: Standing | None = None,
    labels: Labels = OF_RUN,
) -> Iterator[Member]:
    """Yield how the cells of results differ from their goldens, as `read_members` does.

    Proposals of earlier runs of other cells stay beside the results, and do not belong to them.
    """
    checked = {part.folder_of(row) for part in parts for row in part.rows}
    roots = dict.fromkeys(part.folder.parent for part in parts)
    proposed = (each for root in roots for each in find(root) if each.folder in checked)
    return read_members(proposed, goldens, standing, labels)


def current(found: Member, standing: Standing) -> Member:
    """Return a member with why it cannot be recorded now, and the decision that recording it needs."""
    if found.proposed is None or found.damage:
        return found
    if objection := standing.objection(found.proposal):
        return replace(found, objection=objection)
    return replace(found, undecided=standing.undecided(found.proposal, found.proposed))


def member(
    proposal: Proposal,
    reviewed: Record | None,
    proposed: Record | None,
    made: Sequence[Record],
    damage: str = "",
    difference: Difference | None = None,
    labels: Labels = OF_RUN,
) -> Member:
    """Return how a cell differs from its golden.

    Parameters
    ----------
    made
        The artifacts of its variations, each once.
    damage
        Why its golden cannot be read: nothing is said of how it differs.
    difference
        Of `reviewed` and `proposed`, where they were compared before.
    """
    before, after = reviewed, proposed or next(iter(made), None)
    if proposal.verdict in DISAGREEING:
        before, after = (made[0], made[1]) if len(made) > 1 else (None, None)
    compared = after is not None and (before is not None or (proposed is not None and not damage))
    # Programs of two models are not compared: the case is the cause.
    compared &= proposal.blamed != MODEL or proposal.verdict not in DISAGREEING
    edits: tuple[Edit, ...] = ()
    more = Quantities()
    if compared and before is not None and after is not None:
        found = difference
        if found is None or found.before is not before or found.after is not after:
            found = Difference(before, after, labels)
        edits, more = _edits(proposal, found), found.quantities
    elif compared and after is not None:
        edits = (_alone(after, targets.delegates(proposal.target), labels),)
    for each in (before, after, proposed):
        if each is not None:
            # What was read of its payloads is not needed for long.
            each.outlines.forget()
    size = sum(map(len, after.sections.values())) if after is not None else 0
    is_recorded = reviewed is not None and reviewed.digest == proposal.content
    return Member(
        *(proposal, before, after, edits, more),
        proposed=proposed,
        recorded=is_recorded,
        size=size,
        damage=damage,
        labels=labels,
    )


def _alone(made: Record, delegates: bool, labels: Labels) -> Edit:
    """Return the edit of a cell that has no golden; a program without a delegate is one where its target makes some."""
    new = made.inventory
    failed = f"{FAILS}: {new.failure}" if new.failure else ""
    lacks = labels.old if labels == OF_RUN else f"{labels.old} that is right"
    return NewCell(NEW, failed or (UNDELEGATED if delegates and not new.delegates else ""), lacks)


def _edits(proposal: Proposal, found: Difference) -> tuple[Edit, ...]:
    """Return how a cell differs from its golden: in names alone where that is its verdict, and still so."""
    if proposal.verdict == RENAMED and (names := found.names_alone):
        return (NamesAlone(TEXT, *names[0]),)
    return found.edits


def _weights(members: Sequence[Member]) -> Iterator[str]:
    """Yield lines to weigh a cause by: errors that grew, values that moved, SQNR that fell."""
    measured = [each for each in members if each.used is not None]
    known = [each for each in measured if each.used_before is not None]
    unknown = [each for each in measured if each.used_before is None]
    if grown := sorted((each for each in known if each.growth), key=lambda each: -each.growth):
        where = f"most in {grown[0].proposal.cell}: {grown[0].error_words}"
        yield f"error against eager: larger in {len(grown)} of {len(known)}, {where}"
    elif known:
        yield f"error against eager: larger in none of {len(known)}"
    if unknown:
        largest = max(unknown, key=lambda each: each.used or 0.0)
        most = f"{errors.against(largest.used or 0.0)} in {largest.proposal.cell}"
        which = "its error" if len(unknown) == 1 else f"the largest of {len(unknown)} whose error"
        yield f"error against eager: {most}; {which} before is unknown"
    if parts := [part for each in members if (part := each.quantities.moved) is not None]:
        yield f"constants changed by at most {max(parts):.2g} of their largest listed value"
    found = ((each.proposal.cell, each.ratios) for each in members)
    pairs = {cell: (had, now) for cell, (had, now) in found if had is not None and now is not None}
    fallen = {cell: had - now for cell, (had, now) in pairs.items() if accuracy.fell(had, now)}
    lower = f"SQNR: lower by more than {accuracy.STEP:g} dB in"
    if fallen:
        cell = max(fallen, key=lambda each: fallen[each])
        had, now = pairs[cell]
        yield f"{lower} {len(fallen)} of {len(pairs)}, most in {cell}: {had:.1f} -> {now:.1f} dB"
    elif pairs:
        yield f"{lower} none of {len(pairs)}"


def _unlike(members: Sequence[Member]) -> Iterator[tuple[str, str]]:
    """Yield the members that show the edits of their group in another direction, far more, or with other values."""
    # Names alone make a program longer or shorter.
    if len(members) < FEWEST or members[0].names_alone is not None:
        return
    shown: dict[Edit, list[Edit]] = defaultdict(list)
    for edit in (edit for member in members for edit in member.edits if edit.kind == ATTRIBUTES):
        shown[edit].append(edit)
    usual: dict[Edit, Edit] = {}
    for edit, alike in shown.items():
        most, times = _usual(alike)
        if 2 * times > len(alike) >= FEWEST:
            usual[edit] = most
    medians = {
        what: statistics.median(amount(each.quantities) for each in members)
        for what, amount in AMOUNTS.items()
    }
    for member in members:
        mine = {edit: edit for edit in member.edits}
        why = [
            f"{mine[edit].line}, not {most.detail}"
            for edit, most in usual.items()
            if edit in mine and mine[edit].own != most.own
        ]
        why += _far(member, medians)
        if why:
            yield member.proposal.name, "; ".join(why)


def _far(member: Member, medians: Mapping[str, float]) -> Iterator[str]:
    for what, middle in medians.items():
        mine = AMOUNTS[what](member.quantities)
        if mine * middle < 0 or (middle and abs(mine) > UNLIKE * abs(middle)):
            yield f"{what} {mine:+,d} where the median is {middle:+,g}"


def _place(blamed: str | None) -> str:
    """Return where a difference was made, as a title ends."""
    if blamed is None:
        return ""
    return STAGES.get(_stage(blamed), f"after {blamed}")


def _stage(blamed: str) -> str:
    return re.sub(r"_\d+$", "", blamed)


def _contents(proposal: Proposal) -> list[str | None]:
    return [proposal.name, proposal.verdict, proposal.content, proposal.replaces]


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:DIGITS]
