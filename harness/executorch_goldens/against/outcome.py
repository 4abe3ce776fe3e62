"""The kind of difference of a cell between two toolchains, in one word: the worst that applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Artifact, Lowered, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import accuracy, equality, rendering
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.golden import FAILURE, Texts
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.goldens.quantities import measured, sqnr
from executorch_goldens.goldens.reading import Reading, reading
from executorch_goldens.judging import comparison, likeness
from executorch_goldens.judging.verdict import DISAGREEING, Verdict
from executorch_goldens.releases import Release
from executorch_goldens.review.benign import against

#: The kinds of difference, the worst first, in words.
KINDS: Mapping[str, str] = {
    "wrong": "newly wrong",
    "unstable": "newly unstable",
    "fails": "newly failing",
    "differently": "wrong, unstable or failing in another way",
    "outside": "more operators outside delegates",
    "memory": "more memory",
    "bytes": "more bytes",
    "inexact": "less exact",
    "different": "different, and no worse",
    "renamed": "renamed only",
    "order": "reordered only",
    "better": "better",
}
SAME = "identical"
#: Names in ``--allow``, and the kinds that they allow.
ALLOWED = {"renames": "renamed", "order": "order"}

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
    """

    verdict: Verdict
    texts: Texts | None
    every: tuple[object, ...]
    accuracy: Accuracy | None

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], release: Release, reviewed: Texts | None = None) -> Made:
        """Judge a side's artifact; with `reviewed`, the base's artifact, compare the head with it."""
        cell = outcomes[0].cell
        try:
            found = comparison.compare(cell, outcomes, reviewed, release, labels=OF_TOOLCHAINS)
        except DecodeError as error:
            found = comparison.Comparison(comparison.undecodable(cell, error, release))
        made = outcomes[0].result.result if isinstance(outcomes[0].result, Artifact) else None
        every = (
            () if found.texts is not None else tuple(_comparable(outcome, release) for outcome in outcomes)
        )
        return cls(
            found.verdict,
            found.texts,
            every,
            Accuracy.of(made) if isinstance(made, Lowered) else None,
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
    def state(self) -> int:
        """Return how bad it is."""
        if self.verdict.name in DISAGREEING:
            return UNSTABLE
        if self.texts is not None:
            return FAILING if FAILURE in self.texts else RIGHT
        return FAILING if self.verdict.name == "failed" else WRONG


def _comparable(outcome: Outcome, release: Release) -> object:
    """Return an unsuccessful export in a form that can be compared with another."""
    if not isinstance(outcome.result, Artifact):
        return outcome.result.verdict, outcome.result.reason.partition("\n")[0]
    try:
        made_with = comparison.made_with(outcome.result, [outcome.variation], release)
        return equality.compared(rendering.render(outcome.result, made_with))
    except DecodeError as error:
        return str(error)


def kind_of(base: Made, head: Made) -> str:
    """Return the kind of difference of a cell: `SAME`, or one of `KINDS`."""
    if head.state != base.state:
        return _WORSE[head.state] if head.state > base.state else "better"
    if base.texts is None or head.texts is None:
        # Both are wrong, or do not repeat: texts are there of what each variation made.
        if base.every == head.every:
            return SAME
        wrong_alike = base.verdict.name == head.verdict.name and base.verdict.reason == head.verdict.reason
        return "different" if wrong_alike else "differently"
    alike = likeness.likeness(base.texts, head.texts)
    if head.state == FAILING:
        return SAME if alike == likeness.SAME else "differently"
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
    if is_less_exact(base, head, old, new):
        return "inexact"
    if alike in (likeness.RENAMED, likeness.REORDERED):
        return "renamed" if alike == likeness.RENAMED else "order"
    is_less = any(after.get(name, 0) < before.get(name, 0) for name in _QUANTITIES)
    return "better" if is_less else "different"


def is_less_exact(base: Made, head: Made, old: Reading, new: Reading) -> bool:
    """Return whether a program is further from eager, by a share of its tolerance or by its SQNR."""
    had, has = base.used, head.used
    if had is not None and has is not None and has > had * TIMES and has - had > PART:
        return True
    ratios = sqnr(old), sqnr(new)
    return ratios[0] is not None and ratios[1] is not None and ratios[0] - ratios[1] > accuracy.STEP


def extent(base: Made, head: Made) -> float:
    """Return how large a difference is: the largest part by which a quantity, or the error, is more on the head."""
    if base.texts is None or head.texts is None:
        return 0.0
    old, new = measured(reading(base.texts)), measured(reading(head.texts))
    parts = [
        (new[name] - old[name]) / max(old[name], 1) for name in _QUANTITIES if name in old and name in new
    ]
    return max([*parts, (head.used or 0.0) - (base.used or 0.0)])


def shown(kind: str, base: Made, head: Made) -> str:
    """Return the message for a cell of a kind."""
    if head.state != base.state and head.state != RIGHT:
        return f"{head.verdict.name}: {_reason(head)}"
    if head.state != base.state:
        return f"was {base.verdict.name}: {_reason(base)}"
    if _reason(base) == _reason(head) and head.state != RIGHT:
        return f"{head.verdict.name} on both sides: {_reason(head)}"
    if base.texts is None or head.texts is None or head.state == FAILING:
        return f"{base.verdict.name}: {_reason(base)} -> {head.verdict.name}: {_reason(head)}"
    return "; ".join(_figures(kind, base, head))


def _figures(kind: str, base: Made, head: Made) -> list[str]:
    """Return figures of the difference between two right programs."""
    old, new = measured(reading(base.texts or {})), measured(reading(head.texts or {}))
    names = {"outside": "operators outside", "memory": "bytes of memory", "program": "bytes"}
    lines = [
        f"{old[name]:,} -> {new[name]:,} {word}"
        for name, word in names.items()
        if name in old and name in new and old[name] != new[name]
    ]
    if kind == "inexact" and base.used is not None and head.used is not None:
        lines.append(f"error {base.used:.3g} -> {against(head.used)}")
        if base.sqnr is not None and head.sqnr is not None:
            lines.append(f"SQNR {base.sqnr:.1f} -> {head.sqnr:.1f} dB")
    return lines


def _reason(made: Made) -> str:
    return (made.verdict.reason.splitlines() or [""])[0].removesuffix(f"; has {OF_TOOLCHAINS.unlike}")
