"""The kind of difference of a cell between two toolchains, in one word: the worst that applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Artifact, Failure, Lowered, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import accuracy, equality, rendering
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.golden import FAILURE, Texts
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.goldens.quantities import may_be_better, measured, sqnr
from executorch_goldens.goldens.reading import Reading, reading
from executorch_goldens.judging import comparison, likeness
from executorch_goldens.judging.verdict import DISAGREEING, NOT_RUN, Verdict
from executorch_goldens.review.benign import against
from executorch_goldens.settings.releases import Release

#: The kinds of difference, the worst first, in words.
KINDS: Mapping[str, str] = {
    "wrong": "newly wrong",
    "unstable": "newly unstable",
    "fails": "newly failing",
    "unjudged": "no longer judged",
    "differently": "wrong, unstable or failing in another way",
    "outside": "more operators outside delegates",
    "memory": "more memory",
    "bytes": "more bytes",
    "inexact": "less exact",
    "as-wrong": "as wrong as before, with another program",
    "different": "different, and no worse",
    "renamed": "renamed only",
    "order": "reordered only",
    "better": "better",
}
SAME = "identical"
#: Allows that no edited line was reached.
UNREACHED = "unreached"
#: Names in ``--allow``, and the kinds that they allow.
ALLOWED = {"renames": "renamed", "order": "order", UNREACHED: UNREACHED}

#: States of a side of a cell, each worse than those before.
RIGHT, FAILING, WRONG, UNSTABLE = range(4)
#: The kind of a cell whose head is in a worse state than its base.
_WORSE = {FAILING: "fails", WRONG: "wrong", UNSTABLE: "unstable"}
#: Quantities whose increase is a kind of its own, in the order of `KINDS`.
_QUANTITIES = {"outside": "outside", "memory": "memory", "constants": "bytes", "program": "bytes"}
#: An error that takes this many times as much of its tolerance, and this part of it more, is less exact.
TIMES, PART = 1.1, 0.01


@dataclass(frozen=True)
class Made:
    """The result of a cell with one toolchain.

    Attributes
    ----------
    verdict
        By itself, without a golden: ``new`` where it repeats and is right, or fails to lower as it should be judged.
    texts
        The artifact that its variations agree on, where it is right, or fails to lower; otherwise None.
    every
        Where there is none: what each variation made, as texts, or why it made nothing.
    accuracy
        The distance of the program from eager; None where none ran.
    not_run
        Why the program was not run, so that nothing says that it is right; empty where it was, and where there is none.
    """

    verdict: Verdict
    texts: Texts | None
    every: tuple[object, ...]
    accuracy: Accuracy | None
    not_run: str = ""

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], release: Release, reviewed: Texts | None = None) -> Made:
        """Judge a side's artifact; with `reviewed`, the base's artifact, compare the head with it."""
        cell = outcomes[0].cell
        try:
            found = comparison.compare(cell, outcomes, reviewed, release, labels=OF_TOOLCHAINS)
        except DecodeError as error:
            found = comparison.Comparison(comparison.undecodable(cell, error))
        made = outcomes[0].result.result if isinstance(outcomes[0].result, Artifact) else None
        every = (
            () if found.texts is not None else tuple(_comparable(outcome, release) for outcome in outcomes)
        )
        return cls(
            found.verdict,
            found.texts,
            every,
            Accuracy.of(made) if isinstance(made, Lowered) else None,
            made.not_run if isinstance(made, Lowered) else "",
        )

    @property
    def used(self) -> float | None:
        """Return the share of the tolerance that the error takes; None where nothing was measured."""
        return self.accuracy.used if self.accuracy is not None else None

    @property
    def sqnr(self) -> float | None:
        """Ratio of signal to quantization noise, in dB; None where nothing was measured."""
        return self.accuracy.sqnr if self.accuracy is not None else None

    @property
    def result(self) -> str:
        """The verdict, with its reason; a failure that repeats has no verdict without a golden."""
        return _reason(self) if self.verdict.name == "new" else f"{self.verdict.name}: {_reason(self)}"

    @property
    def state(self) -> int:
        """Return how bad it is."""
        if self.verdict.name in DISAGREEING:
            return UNSTABLE
        if self.texts is not None:
            return FAILING if FAILURE in self.texts else RIGHT
        return FAILING if self.verdict.name == "failed" else WRONG


def _comparable(outcome: Outcome, release: Release) -> object:
    """Return an unsuccessful export in a form that can be compared with another: its failure, and its program."""
    if not isinstance(outcome.result, Artifact):
        return outcome.result.verdict, outcome.result.reason.partition("\n")[0]
    result = outcome.result.result
    program = result.made if isinstance(result, Failure) else result
    try:
        made_with = comparison.made_with(outcome.result, [outcome.variation], release)
        compared = equality.compared(rendering.render(outcome.result, made_with))
    except DecodeError as error:
        compared = {"error": str(error)}
    made = program and (program.graph, program.delegates, program.pte_sha256, program.data)
    return compared, made


def kind_of(base: Made, head: Made) -> str:
    """Return the kind of difference of a cell: `SAME`, or one of `KINDS`."""
    if head.state != base.state:
        return _WORSE[head.state] if head.state > base.state else "better"
    if base.texts is None or head.texts is None:
        # Both are wrong, or do not repeat: texts are there of what each variation made.
        if base.every == head.every:
            return SAME
        return "as-wrong" if base.result == head.result and head.state != FAILING else "differently"
    alike = likeness.likeness(base.texts, head.texts)
    if head.state == FAILING:
        return SAME if alike == likeness.SAME else "differently"
    if head.not_run and not base.not_run:
        return "unjudged"
    return _of_programs(base, head, alike)


def _of_programs(base: Made, head: Made, alike: str) -> str:
    """Return the kind of difference of two programs that are right."""
    assert base.texts is not None
    assert head.texts is not None
    if alike == likeness.SAME:
        return SAME
    old, new = reading(base.texts), reading(head.texts)
    before, after = measured(old), measured(new)
    for quantity, kind in _QUANTITIES.items():
        if after.get(quantity, 0) > before.get(quantity, 0):
            return kind
    if any(_losses(base, head, old, new)):
        return "inexact"
    if alike in (likeness.RENAMED, likeness.REORDERED):
        return "renamed" if alike == likeness.RENAMED else "order"
    is_less = any(after.get(name, 0) < before.get(name, 0) for name in _QUANTITIES)
    return "better" if is_less and may_be_better(old, new) else "different"


def _losses(base: Made, head: Made, old: Reading, new: Reading) -> Iterator[str]:
    """Yield the error and the SQNR before and after, each if it is worse by more than a machine may change it."""
    had, has = base.used, head.used
    if had is not None and has is not None and has > had * TIMES and has - had > PART:
        yield f"error {had:.3g} -> {against(has)}"
    ratios = sqnr(old), sqnr(new)
    if ratios[0] is not None and ratios[1] is not None and accuracy.fell(ratios[0], ratios[1]):
        yield f"SQNR {ratios[0]:.1f} -> {ratios[1]:.1f} dB"


def extent(base: Made, head: Made) -> float:
    """Return how large a difference is: the largest part by which a quantity, or the error, is more on the head."""
    if base.texts is None or head.texts is None:
        return 0.0
    old, new = measured(reading(base.texts)), measured(reading(head.texts))
    parts = [
        (new[name] - old[name]) / max(old[name], 1) for name in _QUANTITIES if name in old and name in new
    ]
    return max([*parts, (head.used or 0.0) - (base.used or 0.0)])


def shown(base: Made, head: Made) -> str:
    """Return the message for a cell: what it is on both sides, or the figures of its programs."""
    if base.state == RIGHT and head.state != RIGHT:
        return head.result
    if head.state == RIGHT and base.state != RIGHT:
        return f"was {base.result}"
    if head.state != RIGHT:
        if base.result == head.result:
            return f"{head.verdict.name} on both sides: {_reason(head)}"
        return f"{base.result} -> {head.result}"
    if head.not_run and not base.not_run:
        return f"{NOT_RUN} {head.not_run}"
    return "; ".join(_figures(base, head))


def _figures(base: Made, head: Made) -> list[str]:
    """Return figures of the difference between two right programs: those by which `kind_of` decides."""
    before, after = reading(base.texts or {}), reading(head.texts or {})
    old, new = measured(before), measured(after)
    names = {
        "outside": "operators outside",
        "memory": "bytes of memory",
        "constants": "bytes of constants",
        "program": "bytes",
    }
    lines = [
        f"{old[name]:,} -> {new[name]:,} {word}"
        for name, word in names.items()
        if name in old and name in new and old[name] != new[name]
    ]
    return [*lines, *_losses(base, head, before, after)]


def _reason(made: Made) -> str:
    return (made.verdict.reason.splitlines() or [""])[0].removesuffix(f"; has no {OF_TOOLCHAINS.old}")
