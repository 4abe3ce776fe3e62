"""The message of a cell: why it has its verdict, then what is known of it, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from executorch_goldens.diff import texts
from executorch_goldens.diff.difference import Difference
from executorch_goldens.files.wording import count
from executorch_goldens.goldens.decisions import inline
from executorch_goldens.goldens.findings import Differs, UnequalOutputs
from executorch_goldens.goldens.labels import Labels
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.verdict import DISAGREEING, UNEXPECTED, Verdict
from executorch_goldens.words import causes, findings, refusals

#: What a line is about: the pass, the factor, or nothing of these; else the section whose difference it is of.
PASS, FACTOR, REST = "pass", "factor", ""
#: A line, after what it is about.
Line = tuple[str, str]
#: Said of a wrong program without a golden.
UNTRACED = "no pass is named: there is no golden whose passes its passes could be compared with"


def reason(judged: Verdict) -> str:
    """Return why a cell has its verdict, on one line; empty for a stable one."""
    return findings.reason(judged.findings[0], judged.cell.target, judged.labels) if judged.findings else ""


def detail(judged: Verdict) -> tuple[str, ...]:
    """Return the lines below the reason: where it begins, then all that was found."""
    return tuple(line for _, line in lines(judged))


def lines(judged: Verdict) -> Iterator[Line]:
    """Yield the lines below the reason, with what each is about."""
    yield from _where(judged)
    yield from ((REST, line) for line in _found(judged))
    yield from _difference(judged)
    if judged.name == UNEXPECTED and judged.refusal is not None:
        yield REST, refusals.refusal(judged.refusal)
    yield from ((REST, line) for line in judged.undiagnosed)


def _found(judged: Verdict) -> Iterator[str]:
    if judged.raised is not None:
        at, variations = judged.raised
        yield f"raised in {findings.frame(at)}, under {count(variations, 'variation')}"
    yield from _otherwise(judged)
    for number, each in enumerate(judged.findings):
        said = "\n".join(findings.lines(each, judged.cell.target, judged.labels)).splitlines()
        yield from said if number else said[1:]


def _where(judged: Verdict) -> Iterator[Line]:
    """Yield where it begins: the pass, the factor, the graphs after the pass."""
    if judged.divergence is not None and not judged.blames_case:
        yield PASS, causes.divergence(judged.divergence, judged.labels)
    elif judged.divergence is None and judged.name in DISAGREEING and judged.is_traced is not None:
        one_program = isinstance(judged.findings[0], UnequalOutputs)
        made = "when the program runs" if one_program else "by serialization or emission"
        yield REST, f"no pass diverges: the difference arises {made}"
    if judged.attribution is not None:
        yield FACTOR, causes.attribution(judged.attribution)
    if judged.after and judged.divergence is not None:
        name = f"graph after {judged.divergence.name}"
        one, other = (Record({}, {name: graph}) for graph in judged.after.values())
        yield from texts.by_section(Difference(one, other, Labels(*judged.after)))


def _otherwise(judged: Verdict) -> Iterator[str]:
    """Yield what is known of the cell where that is not what it shows."""
    if judged.otherwise is not None:
        file, declared = judged.otherwise
        known = "; ".join(
            f"{each.verdict}: {inline(each.finding) if each.finding is not None else each.why}"
            for each in declared
        )
        yield f"{file} knows something else of it, {known}"
        yield f"this is {inline(judged.cause)}"


def _difference(judged: Verdict) -> Iterator[Line]:
    """Yield how what was compared differs, without mere numbering."""
    looking, nothing, found = Diagnoses(), list[Line](), judged.findings[0] if judged.findings else None
    if (difference := judged.difference) is not None:
        of_golden = isinstance(found, Differs)
        if isinstance(found, Differs):
            yield from looking.attempt(
                "the change in quantities",
                lambda: [(REST, line) for line in difference.directions()],
                nothing,
            )
            for operator, why in found.newly_outside:
                yield REST, f"  {operator} is outside: {why}"
        yield from looking.attempt(
            "the differences", lambda: [*texts.by_section(difference, of_golden)], nothing
        )
    yield from ((REST, line) for line in looking.failed)
    if judged.whole is not None:
        yield REST, f"  its whole text is in {judged.whole}; 'goldens compare' shows the lines that differ"
    if judged.name == "corrupt" and judged.divergence is None and judged.is_traced is False:
        yield REST, UNTRACED
