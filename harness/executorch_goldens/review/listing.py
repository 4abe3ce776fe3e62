"""The words of a review: groups with their specimens, and the differences that a person asks to see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from executorch_goldens.causes.groups import BARRED, OUTDATED, PENDING, UNDECIDED, Group, Member
from executorch_goldens.diff import texts
from executorch_goldens.diff.difference import Difference
from executorch_goldens.files.invocation import FEWER
from executorch_goldens.files.wording import aligned, count, some
from executorch_goldens.goldens import equality
from executorch_goldens.goldens.decisions import Missing
from executorch_goldens.goldens.labels import OF_VARIATIONS, Labels
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.judging.verdict import DISAGREEING
from executorch_goldens.words import findings, refusals

#: Lines of the specimen that a list shows.
SHOWN_LINES = 8
#: Cells that a list names.
SHOWN_CELLS = 6
#: Choices about a group, by its state.
STATE_WORDS = {
    PENDING: "to review",
    UNDECIDED: "to decide: what accepts it names the option that it takes",
    OUTDATED: "out of date: run the cells again",
    BARRED: "cannot be recorded: wrong, or not reproducible",
}
#: Option with which a person accepts the rest of a cause that makes others wrong.
ALTHOUGH = "--although-corrupt-elsewhere"
#: Option that records with failures, and programs that delegate nothing, that they are expected.
EXPECT = "--expect"
#: The option that takes each kind of decision.
OPTIONS = {Missing: EXPECT, Fewer: FEWER}


def listing(groups: Sequence[Group], rejected: Mapping[str, str]) -> Iterator[str]:
    """Yield every group, worst first, with its specimen and the possible actions."""
    yield f"{count(len(groups), 'cause')}, {count(sum(len(group.members) for group in groups), 'cell')}, worst first"
    for group in groups:
        yield ""
        yield f"{group.name}  {group.head}"
        yield f"  {STATE_WORDS[group.state]}"
        yield from (f"  {line}" for line in facts(group, rejected))
        for member in group.specimens[1:]:
            found = (member.proposal.verdict, member.error_words)
            yield f"  see also {member.proposal.name}: {', '.join(filter(None, found))}"
        yield f"  for example {group.specimen.proposal.name}:"
        shown = list(difference(group.specimen))
        yield from (f"    {line}" for line in shown[:SHOWN_LINES])
        if len(shown) > SHOWN_LINES:
            yield f"    … {len(shown) - SHOWN_LINES} more lines: goldens review --show {group.name}"
        yield from (f"  {what}: {command}" for what, command in actions(group).items())


def actions(group: Group) -> dict[str, str]:
    """Return the commands that accept a group, where it may be, and reject it, unless the case is to be corrected."""
    found = {} if group.blames_case else {"reject": f'goldens review --reject {group.name} --reason "…"'}
    if group.state not in (PENDING, UNDECIDED):
        return found
    needed = {type(member.undecided) for member in group.recordable}
    options = [ALTHOUGH] if group.doubt else []
    options += [option for kind, option in OPTIONS.items() if kind in needed]
    accept = " ".join(["goldens review --accept", group.name, *options])
    return {"accept": accept, **found} if not group.wrong else {**found, "accept": accept}


def facts(group: Group, rejected: Mapping[str, str]) -> Iterator[str]:
    """Yield the facts of a group beside its title: quantities, cells, exceptions."""
    if reason := rejected.get(group.cause):
        yield f"rejected: {reason}"
    yield from dict.fromkeys(member.damage for member in group.members if member.damage)
    if group.doubt is not None:
        yield refusals.doubt(group.doubt)
    if group.proof:
        yield group.proof
    yield from group.amounts()
    members = sorted(group.members, key=lambda member: -member.growth)
    yield f"cells: {some([member.proposal.name for member in members], SHOWN_CELLS)}"
    yield from (f"unlike the others: {name}: {why}" for name, why in group.unlike.items())
    yield from dict.fromkeys(member.objection for member in group.members if member.state == OUTDATED)
    undecided = (member.undecided for member in group.members if member.state == UNDECIDED)
    yield from [refusals.refusal(each) for each in undecided if each is not None][:1]
    fewer = [numbers for member in group.recordable if (numbers := member.fewer_variations)]
    if fewer:
        before, now = fewer[0]
        yield f"{count(len(fewer), 'golden')} that {before} variations agreed on would name {now}"


def difference(member: Member) -> Iterator[str]:
    """Yield how a cell differs from its golden, without mere numbering; a new artifact whole."""
    unread = member.damage or member.proposal.content is None
    if member.after is None or (member.before is None and unread):
        yield findings.reason(member.proposal.found, member.proposal.target, member.labels)
        return
    if member.before is None:
        made = equality.without_digests(equality.compared(member.after))
        yield from texts.difference(Difference(Record({}, {}), made, _labels(member)))
    else:
        yield from Difference(member.before, member.after, _labels(member)).lines()


def whole(group: Group) -> Iterator[str]:
    """Yield a table of the cells of a group, then how each of them differs."""
    yield from cells(group)
    for member in group.members:
        yield f"{member.proposal.name}:"
        yield from (f"  {line}" for line in difference(member))


def cells(group: Group) -> Iterator[str]:
    """Yield a table of the cells of a group, those first that are wrong, then those whose error grew most."""
    members = sorted(group.members, key=lambda each: (not each.wrong, -each.growth))
    head = ("cell", "verdict", "error / tolerance", "SQNR dB", ".pte bytes")
    rows = [
        (
            each.proposal.name,
            each.proposal.verdict,
            _moved(each.used_before, each.used, ".3g"),
            _moved(*each.ratios, ".1f"),
            f"{each.quantities.program:+,d}",
        )
        for each in members
    ]
    yield from aligned([head, *rows])


def _moved(before: float | None, after: float | None, form: str) -> str:
    """Return a number before and after, where known.

    >>> _moved(0.25, 0.999, ".3g"), _moved(None, 41.25, ".1f"), _moved(None, None, ".1f")
    ('0.25 -> 0.999', '? -> 41.2', '-')
    """
    if after is None:
        return "-"
    return f"{'?' if before is None else format(before, form)} -> {after:{form}}"


def _labels(member: Member) -> Labels:
    return OF_VARIATIONS if member.proposal.verdict in DISAGREEING else member.labels
