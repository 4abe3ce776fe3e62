"""Summary of a change's effect on goldens, in ten lines of Markdown: for the comment on a pull request."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.causes.groups import Group, Member, worst_first
from executorch_goldens.diff.quantities import BETTER, OTHER, WORSE
from executorch_goldens.files import untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden, record
from executorch_goldens.goldens.quantities import QUANTITIES
from executorch_goldens.judging.verdict import UNEXPECTED
from executorch_goldens.results.rows import ALLOWED, KNOWN, ResultRow
from executorch_goldens.review.decisions import ACCEPTED, REJECTED, TRACKER, ReviewDecisions

#: Marks the comment, so that the next run finds and replaces it.
MARK = "<!-- executorch-goldens: summary -->"
#: Verdicts for a person to decide: the change may be intended; the others are defects.
DECIDED = ("changed", "renamed", "new", UNEXPECTED)
#: Causes that are named.
SHOWN_CAUSES = 4
#: Cells that a line names.
SHOWN_CELLS = 3
#: Reasons of known defects that are named.
SHOWN_REASONS = 3
#: Characters of a line that a model's words are in.
SHOWN_CHARACTERS = 160


@dataclass(frozen=True)
class ReviewSummary:
    """Findings of runs, beside those of runs of the base.

    Attributes
    ----------
    base
        The rows of the commit that the change is based on; None where they are not there.
    link
        Address of the whole report; empty for none.
    unchecked
        Which cells have no row, in words (`executorch_goldens.results.merging.unchecked`); empty where all have one.
    """

    rows: Sequence[ResultRow]
    groups: Sequence[Group]
    base: Sequence[ResultRow] | None = None
    link: str = ""
    decided: ReviewDecisions = field(default_factory=ReviewDecisions)
    unchecked: str = ""

    @property
    def state(self) -> str:
        """``green``, ``incomplete``, ``changed`` where a person decides, ``broken`` where something is wrong."""
        verdicts = {row.verdict for row in self._of(lambda kind: kind != ACCEPTED) if not row.accepted}
        if not verdicts:
            return "incomplete" if self.unchecked else "green"
        return "changed" if verdicts <= set(DECIDED) else "broken"

    def markdown(self) -> Iterator[str]:
        """Yield its lines, ten at most."""
        yield MARK
        yield self._head()
        declared = list(self._of(lambda kind: kind == KNOWN))
        yield from self._causes(SHOWN_CAUSES - bool(declared))
        if declared:
            yield f"{count(len(declared), KNOWN)}: {'; '.join(self._reasons(declared))}"
        if directed := "; ".join(self.directed()):
            yield directed
        if against := "; ".join(self.against()):
            yield against
        ways = [f"[the whole report]({self.link})"] if self.link else []
        if self.groups:
            ways.append("`goldens review` goes through the causes")
        if ways:
            yield "; ".join(ways)

    def _head(self) -> str:
        """Return the state and the number of cells of each kind."""
        releases = {row.release for row in self.rows}
        number = Counter(map(self.decided.kind, self.rows))
        open_rows = self._of(lambda kind: kind not in (ACCEPTED, REJECTED, KNOWN))
        parts = [untrusted.markdown(self.unchecked)]
        parts.append(", ".join(_counts([row for row in open_rows if not row.accepted])))
        said = [f"{number[kind]} {kind}" for kind in (ACCEPTED, REJECTED) if number[kind]]
        parts.append(f"{' and '.join(said)} in review" if said else "")
        if number[ALLOWED]:
            parts.append(count(number[ALLOWED], ALLOWED))
        right = sum(row.accepted for row in self.rows) - number[KNOWN] - number[ALLOWED]
        parts.append(f"{count(right, 'cell')} passing, on {count(len(releases), 'release')}")
        return f"**Goldens: {self.state}.** {'; '.join(filter(None, parts))}."

    def _causes(self, most: int) -> Iterator[str]:
        """Yield the worst causes, and the reason against those that were rejected."""
        groups = worst_first(self.groups)
        for group in groups[:most]:
            reason = self.decided.reasons.get(group.cause)
            why = f" (rejected: {untrusted.markdown(reason, SHOWN_CHARACTERS)})" if reason else ""
            yield f"- {untrusted.markdown(group.counts)}: {untrusted.markdown(group.title, SHOWN_CHARACTERS)}{why}"
        if more := groups[most:]:
            cells = sum(len(group.members) for group in more)
            bad = sum(len(group.wrong) for group in more)
            yield f"- {count(len(more), 'further cause')}: {count(cells, 'cell')}, {bad} of them wrong"

    def _of(self, is_meant: Callable[[str], bool]) -> Iterator[ResultRow]:
        """Yield the rows of some kinds, see `executorch_goldens.review.decisions.ReviewDecisions.kind`."""
        return (row for row in self.rows if is_meant(self.decided.kind(row)))

    def _reasons(self, declared: Sequence[ResultRow]) -> Iterator[str]:
        """Yield why cells are known defects, with links to upstream's threads: the reasons of most cells first."""
        by_reason: dict[object, list[str]] = defaultdict(list)
        for row in declared:
            defect = self.decided.declared.get(row.name)
            if defect is None:
                by_reason[repr(row.cause)].append(row.reason)
            else:
                by_reason[defect.why or defect.identity].append(defect.reason)
        reasons = sorted(by_reason.values(), key=lambda those: (-len(those), those[0]))
        for those in reasons[:SHOWN_REASONS]:
            words = linked(untrusted.markdown(those[0], SHOWN_CHARACTERS))
            yield f"{words} ({count(len(those), 'cell')})" if len(reasons) > 1 else words
        if more := reasons[SHOWN_REASONS:]:
            yield f"{count(len(more), 'further reason')} ({count(sum(map(len, more)), 'cell')})"

    def directed(self) -> Iterator[str]:
        """Yield quantities that grew, then those that shrank, over all cells that differ from their golden."""
        moved = _moved(member for group in self.groups for member in group.members)
        for word in (WORSE, BETTER, OTHER):
            for key in QUANTITIES:
                if by := moved[word, key]:
                    yield f"{word}: {sum(by):+,} {QUANTITIES[key]} ({count(len(by), 'cell')})"

    def against(self) -> Iterator[str]:
        """Yield the cells that are otherwise than in the base, those that got worse first."""
        if self.base is None:
            return
        before, now = ({row.name: row.accepted for row in rows} for rows in (self.base, self.rows))
        # Cells accepted since pass.
        now |= dict.fromkeys(self.decided.accepted & now.keys(), True)
        worse = [name for name, accepted in now.items() if not accepted and before.get(name)]
        mended = [name for name, accepted in now.items() if accepted and before.get(name) is False]
        lacking = [name for name in now if name not in before]
        gone = sum(name not in now for name in before)
        named = (("not so in the base", worse), ("mended", mended), ("not in the base", lacking))
        for words, names in named:
            if names:
                yield f"{words}: {_shortened(names)}"
        if gone:
            # The base may have run all cells, and the change those that it concerns.
            yield f"not run here: {count(gone, 'cell')} of the base"


def linked(words: str) -> str:
    r"""Return words of Markdown, as `executorch_goldens.files.untrusted.markdown` makes them, with threads as links.

    >>> linked(r"freed (\#21480)")
    'freed ([#21480](https://github.com/pytorch/executorch/issues/21480))'
    """
    return re.sub(r"\\#(\d{3,6})\b", rf"[#\1]({TRACKER}/\1)", words)


def _moved(members: Iterable[Member]) -> Mapping[tuple[str, str], list[int]]:
    """Return, by direction and quantity, how much it differs from the golden in each cell with it on both sides."""
    moved: dict[tuple[str, str], list[int]] = defaultdict(list)
    for member in members:
        for key, each in member.quantities.by_key.items():
            if each.direction:
                moved[each.direction, key].append(each.more)
    return moved


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(map(untrusted.markdown, names[:SHOWN_CELLS]))
    return f"{count(len(names), 'cell')}, as {shown}" if len(names) > SHOWN_CELLS else shown


def _counts(rows: Sequence[ResultRow]) -> Iterator[str]:
    """Yield how many rows have each verdict, the most common first, and how many new ones are no program."""
    kinds = Counter(row.new for row in rows)
    named = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common() if kind)
    for verdict, number in Counter(row.verdict for row in rows).most_common():
        yield f"{number} {untrusted.markdown(verdict)}{f' ({named})' if named and verdict == 'new' else ''}"


def marks(
    groups: Sequence[Group], goldens: Path, within: str, unchecked: str = "", most: int = 10
) -> Iterator[str]:
    """Yield GitHub's commands that mark lines, a specimen of each cause first.

    Marked is the line of a file of the repository that raised, or the first line of a golden that differs.

    Parameters
    ----------
    unchecked
        Which cells were not checked, for a mark of its own; empty for none.
    most
        Number of marks that GitHub shows of a step.
    """
    if unchecked:
        yield f"::error::{_data(unchecked)}"
        most -= 1
    members = [(group, group.specimen) for group in groups]
    members += [(group, each) for group in groups for each in group.members if each is not group.specimen]
    found = (
        (group, member.proposal, place)
        for group, member in members
        if (place := _place(member, goldens, within))
    )
    for group, proposal, (file, line) in itertools.islice(found, most):
        title = f"{proposal.verdict}: {proposal.cause['kind']}"
        yield f"::error file={_property(file)},line={line},title={_property(title)}::{_data(group.title)}"


def _place(member: Member, goldens: Path, within: str) -> tuple[str, int] | None:
    """Return the file and the line to mark; None where there is none in the repository."""
    proposal = member.proposal
    if proposal.at is not None:
        return None if Path(proposal.at.file).is_absolute() else (proposal.at.file, proposal.at.line)
    line = _line(member, goldens)
    return (f"{within}/{proposal.release}/{proposal.cell}{golden.SUFFIX}", line) if line else None


def _line(member: Member, goldens: Path) -> int | None:
    """Return the first line of a golden that differs, from 1, in its sections if in any; None where none does."""
    before, after = member.before, member.after
    if before is None or after is None or before == after:
        return None
    shared = golden.shared(goldens / member.proposal.release)
    ours, theirs = (each.text(shared).splitlines() for each in (before, after))
    unlike = [at for at, (one, other) in enumerate(zip(ours, theirs, strict=False), 1) if one != other]
    # The facts have the digests of the sections.
    sections = next((at for at, line in enumerate(ours, 1) if line.startswith(record.MARK)), 0)
    return next((at for at in unlike if at > sections), unlike[0] if unlike else len(ours))


def _data(text: str) -> str:
    """Return a text as the message of one of GitHub's workflow commands."""
    escapes = {"%": "%25", "\r": "%0D", "\n": "%0A"}
    return "".join(escapes.get(character, character) for character in untrusted.escape_controls(text))


def _property(text: str) -> str:
    """Return a text as a property of one, of which a colon or a comma would be the end."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
