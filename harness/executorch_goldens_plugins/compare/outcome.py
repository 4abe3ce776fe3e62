"""The kind of difference of a cell between two toolchains, in one word: the worst that applies."""

from __future__ import annotations

import functools
import operator
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from executorch_goldens.artifact import DIFFERS, UNKNOWN, Artifact, Failure, Lowered, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.diff import likeness
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.quantities import BETTER, WORSE, Quantity, accuracies
from executorch_goldens.goldens import accuracy, equality, rendering
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import Fails, Key, without_details
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.goldens.quantities import sqnr
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import comparison
from executorch_goldens.judging.verdict import DISAGREEING, Verdict, failure_of
from executorch_goldens.results.compared import SAME
from executorch_goldens.results.rows import Reported
from executorch_goldens.settings.releases import Release
from executorch_goldens.words.errors import against
from executorch_goldens.words.findings import NOT_RUN, artifact, failing
from executorch_goldens.words.verdicts import reason

#: Kinds of difference of a head that nobody need refuse.
NO_WORSE = ("as-wrong", "unknown", "different", "renamed", "order", "better")
#: Allows that no edited line was reached.
UNREACHED = "unreached"
#: Names in ``--allow``, and the kinds that they allow.
ALLOWED = {"renames": "renamed", "order": "order", UNREACHED: UNREACHED}
#: Names in ``--require``: every edited line ran that does not only raise; and no cell was left out for time.
REQUIRED = REACHED, ALL = "reached", "all"

#: States of a side of a cell, each worse than those before.
RIGHT, FAILING, WRONG, UNSTABLE = range(4)
#: The kind of a cell whose head is in a worse state than its base.
_WORSE = {FAILING: "fails", WRONG: "wrong", UNSTABLE: "unstable"}
#: Quantities whose increase is a kind of its own, the worst kind first, with that kind, and in words.
_QUANTITIES = {
    "outside": ("outside", "operators outside"),
    "memory": ("memory", "bytes of memory"),
    "constants": ("bytes", "bytes of constants"),
    "program": ("bytes", "bytes"),
}
#: An error that takes this many times as much of its tolerance, and this part of it more, is less exact.
TIMES, PART = 1.1, 0.01
#: What follows from the length of whatever bytes hold: two variations may have one length and nothing else in common.
_OF_LENGTHS = re.compile(r"\d+ bytes|(?:size|offset) = \d+|sha256 [0-9a-f]+")


@dataclass(frozen=True)
class Made:
    """The result of a cell with one toolchain.

    Attributes
    ----------
    verdict
        The verdict without a golden: ``new`` where it repeats and is right, or fails to lower.
    record
        The artifact that its variations agree on, where it is right, or fails to lower; otherwise None.
    every
        Where there is none: what each variation made, or why it made nothing.
    not_run
        Why the program was not run, so that nothing says that it is right; empty where it was, and where there is none.
    failure
        How lowering fails, if it does so in every variation; None otherwise.
    variations
        Number of variations.
    difference
        Of the base's artifact and of this one, where it is the head's and they were compared.
    """

    verdict: Verdict
    record: Record | None
    every: tuple[tuple[object, ...], ...]
    accuracy: Accuracy | None
    not_run: str = ""
    failure: Fails | None = None
    variations: int = 1
    difference: Difference | None = None

    @classmethod
    def from_outcomes(
        cls, outcomes: Sequence[Outcome], release: Release, reviewed: Record | None = None
    ) -> Made:
        """Judge a side's artifact; with `reviewed`, the base's artifact, compare the head with it."""
        cell = outcomes[0].cell
        try:
            found = comparison.compare(
                cell, outcomes, reviewed, release, labels=OF_TOOLCHAINS, accepted=_unchecked(outcomes)
            )
        except DecodeError as error:
            found = comparison.JudgedCell(comparison.undecodable(cell, error))
        made = outcomes[0].result.result if isinstance(outcomes[0].result, Artifact) else None
        every = (
            () if found.record is not None else tuple(_comparable(outcome, release) for outcome in outcomes)
        )
        return cls(
            found.verdict,
            found.record,
            every,
            Accuracy.measure(made) if isinstance(made, Lowered) else None,
            made.not_run if isinstance(made, Lowered) else "",
            failure_of(made) if found.record is not None and isinstance(made, Failure) else None,
            len(outcomes),
            found.difference,
        )

    def difference_from(self, base: Made) -> Difference | None:
        """Return the difference of the base's artifact and of this one; None where one side has none."""
        if base.record is None or self.record is None:
            return None
        if self.difference is not None and self.difference.before is base.record:
            return self.difference
        return Difference(base.record, self.record, OF_TOOLCHAINS)

    @property
    def agreed(self) -> Counter[tuple[str, str]]:
        """Facts and lines of sections that all variations made: the rest may change from one export to the next."""
        return functools.reduce(operator.and_, map(_lines, self.every)) if self.every else Counter()

    @property
    def used(self) -> float | None:
        """Return the share of the tolerance that the error takes; None where nothing was measured."""
        return self.accuracy.used if self.accuracy is not None else None

    @property
    def sqnr(self) -> float | None:
        """Ratio of signal to quantization noise, in dB; None where nothing was measured."""
        return self.accuracy.sqnr if self.accuracy is not None else None

    @property
    def found(self) -> Reported:
        """What was found of it, as results have it."""
        return Reported.of_verdict(self.verdict, self.accuracy, self.not_run)

    @property
    def result(self) -> str:
        """The verdict, with its reason; a failure that repeats has no verdict without a golden."""
        if self.failure is not None:
            return f"fails: {failing(self.failure)}"
        return _reason(self) if self.verdict.name == "new" else f"{self.verdict.name}: {_reason(self)}"

    @property
    def wrongness(self) -> tuple[str, Any]:
        """What is wrong with it, and how much."""
        found = self.verdict.findings
        return self.verdict.name, without_details(found[0]) if found else None

    @property
    def cause(self) -> Key:
        """The key of what is not right, which cells of one cause have in common."""
        return (self.failure or self.verdict.findings[0]).key()

    @property
    def repeats(self) -> bool:
        """True if all variations made the same, or came to the same end."""
        return self.state != UNSTABLE and all(each == self.every[0] for each in self.every)

    def is_among(self, other: Made) -> bool:
        """Return whether some variation of another side made what all variations of this one did."""
        made = self.every[0][:1] if self.record is None else (equality.compared(self.record),)
        return any(each[:1] == made for each in other.every)

    @property
    def is_right(self) -> bool:
        """True if it is a program that repeats and is right."""
        return self.state == RIGHT

    @property
    def state(self) -> int:
        """Return how bad it is."""
        if self.verdict.name in DISAGREEING:
            return UNSTABLE
        if self.record is not None:
            return FAILING if self.record.fails else RIGHT
        return FAILING if self.verdict.name == "failed" else WRONG


def decided(outcome: Outcome) -> bool | None:
    """Return whether edited functions gave something else than the base's in an export of the head; None if unknown.

    Nobody knows of an export that came to no program: the base may come to one.
    """
    made = outcome.result
    verdicts = {each.verdict for each in made.probes} if isinstance(made, Artifact) else set[str]()
    if DIFFERS in verdicts:
        return True
    return None if UNKNOWN in verdicts or outcome.program is None else False


def may_be_luck(base: Made, head: Made) -> bool:
    """Return whether one side repeats and the other does not: more variations may show that neither does."""
    return base.state != head.state and base.repeats != head.repeats


def _comparable(outcome: Outcome, release: Release) -> tuple[object, ...]:
    """Return an unsuccessful export in a form that can be compared with another: its failure, and its program."""
    if not isinstance(outcome.result, Artifact):
        return outcome.result.verdict, outcome.result.key()
    result = outcome.result.result
    program = result.made if isinstance(result, Failure) else result
    try:
        made_with = comparison.made_with(outcome.result, [outcome.variation], release)
        compared: object = equality.compared(rendering.render(outcome.result, made_with))
    except DecodeError as error:
        compared = {"error": str(error)}
    made = program and (program.graph, program.delegates, program.pte_sha256, program.data)
    return compared, made


def _lines(each: object) -> Counter[tuple[str, str]]:
    """Return the facts of what a variation made, and its sections' lines, without how large bytes are; with counts."""
    compared = each[0] if isinstance(each, tuple) else each
    if not isinstance(compared, Record):
        return Counter([("", str(each))])
    lines = ((name, line) for name, text in compared.sections.items() for line in text.splitlines())
    return Counter((name, _OF_LENGTHS.sub("…", line)) for name, line in (*compared.facts.items(), *lines))


def kind_of(base: Made, head: Made) -> str:
    """Return the kind of difference of a cell: `SAME`, or one of `results.compared.KINDS`."""
    if head.state < base.state:
        return "better"
    if head.state > base.state:
        return "at-times" if may_be_luck(base, head) and base.is_among(head) else _WORSE[head.state]
    difference = head.difference_from(base)
    if difference is None:
        # Both are wrong, or do not repeat: there is what each variation made.
        if base.every == head.every or (head.state == UNSTABLE and base.agreed == head.agreed):
            return SAME
        return "as-wrong" if base.wrongness == head.wrongness and head.state != FAILING else "differently"
    alike = difference.likeness
    if head.state == FAILING:
        return SAME if alike == likeness.SAME else "differently"
    if head.not_run and not base.not_run:
        return "unjudged"
    return _of_programs(base, head, alike)


def _of_programs(base: Made, head: Made, alike: str) -> str:
    """Return the kind of difference of two programs that are right."""
    if alike == likeness.SAME:
        return SAME
    directions = {key: each.direction for key, each in _quantities(base, head).items()}
    for key, (kind, _) in _QUANTITIES.items():
        if directions.get(key) == WORSE:
            return kind
    if any(_losses(base, head)):
        return "inexact"
    if alike in (likeness.RENAMED, likeness.REORDERED):
        return "renamed" if alike == likeness.RENAMED else "order"
    if BETTER in directions.values():
        return "better"
    return "unknown" if head.not_run else "different"


def _unchecked(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the methods without a reference: a golden needs a decision for them, a comparison none."""
    made = (each.result.result for each in outcomes if isinstance(each.result, Artifact))
    names = (name for each in made if isinstance(each, Lowered) for name in each.unchecked)
    return tuple(dict.fromkeys(names))


def _quantities(base: Made, head: Made) -> dict[str, Quantity]:
    """Return those of `_QUANTITIES` that two artifacts have, by key."""
    difference = head.difference_from(base)
    found = difference.quantities.by_key if difference is not None else {}
    return {key: found[key] for key in _QUANTITIES if key in found}


def _losses(base: Made, head: Made) -> Iterator[str]:
    """Yield the error, the SQNR and the values equal to eager's, each if a machine does not make it so much worse."""
    had, has = base.used, head.used
    if had is not None and has is not None and has > had * TIMES and has - had > PART:
        yield f"error {had:.3g} -> {against(has)}"
    ratios = [sqnr(each.record) for each in (base, head) if each.record is not None]
    if None not in ratios and len(ratios) > 1 and accuracy.fell(ratios[0] or 0.0, ratios[1] or 0.0):
        yield f"SQNR {ratios[0]:.1f} -> {ratios[1]:.1f} dB"
    if base.record is None or head.record is None:
        return
    for _, old, new in accuracies(base.record, head.record):
        if accuracy.sqnr(old) is accuracy.sqnr(new) is None and accuracy.is_worse(old, new):
            yield f"{accuracy.text(old)} -> {accuracy.text(new)}"


def extent(base: Made, head: Made) -> float:
    """Return how large a difference is: the largest part by which a quantity, or the error, is more on the head."""
    found = _quantities(base, head)
    parts = [each.more / max(each.before or 0, 1) for each in found.values()]
    return max([*parts, (head.used or 0.0) - (base.used or 0.0)]) if found else 0.0


def shown(base: Made, head: Made) -> str:
    """Return the message for a cell: what it is on both sides, or the figures of its programs."""
    if base.state == head.state != RIGHT and _word(base) == _word(head):
        was, now = (failing(each.failure) if each.failure else _reason(each) for each in (base, head))
        how = f": {now}" if _way(base) == _way(head) else f", in another way: {was} -> {now}"
        return f"{_word(head)} on both sides{how}"
    if head.state != RIGHT:
        before = f"{base.result} -> " if base.state != RIGHT else ""
        return f"{before}{head.result}{_repeating('the base ', base, head)}"
    if base.state != RIGHT:
        was = f"did not lower: {failing(base.failure)}" if base.failure else f"was {base.result}"
        return f"{was}{_repeating('', head, base)}"
    if head.not_run and not base.not_run:
        return f"{NOT_RUN} {head.not_run}"
    figures = [
        f"{each.before:,} -> {each.after:,} {_QUANTITIES[key][1]}"
        for key, each in _quantities(base, head).items()
        if each.direction
    ]
    return "; ".join([*figures, *_losses(base, head)])


def _word(made: Made) -> str:
    return "fails" if made.failure else made.verdict.name


def _way(made: Made) -> Any:
    """Return in which way a side that is not right is so."""
    return made.failure.key() if made.failure else made.wrongness


def _repeating(who: str, steady: Made, other: Made) -> str:
    """Return under how many variations a side repeats, where the other does not; empty where both do, or neither."""
    if other.repeats or not steady.repeats or steady.variations < 2:
        return ""
    same = " one of these" if steady.is_among(other) else ""
    return f"; {who}makes{same or ' the same'} under all {steady.variations} variations"


def _reason(made: Made) -> str:
    judged = made.verdict
    return artifact(judged.findings[0]) if judged.name == "new" else reason(judged)
