"""Accuracy in goldens: distance to eager, its tolerance, and SQNR of quantized programs against float.

The quantized eager graph, which a quantized program has to match, holds the same scales as the program: a wrong scale
is wrong in both. So the outputs of the program are compared with those of the model before it was quantized as well, by
the ratio of the signal's power to that of the difference (SQNR, in dB) and by the cosine of the angle between the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from executorch_goldens.artifact import Lowered, Metric, Tensor
from executorch_goldens.goldens.deviation import Deviation

#: A ratio that differs by no more than this, in dB, is the same: another machine may compute the last bit otherwise.
STEP = 0.5
#: So is a count that differs by one, or by this part of all.
SHARE = 0.005
#: From this SQNR on, in dB, outputs differ by the rounding of float32 at most. Equal outputs count as it.
MOST = 100.0
#: Prefix of a manifest's field of an output, or of the metric of the case's task.
FIELD = "accuracy "
#: The field with how near a program is to eager.
ERROR = "error"
#: Why an output is not measured.
EMPTY, OTHER_SHAPE = "empty", "of another shape than the float model's"


@dataclass(frozen=True)
class Accuracy:
    """Of all outputs on all samples, the worst.

    Attributes
    ----------
    error
        Largest difference of an element from what is expected, as a part of the largest absolute value of those
        elements of its output that are as large as it.
    tolerance
        Largest tolerance of an element, likewise.
    used
        Largest part of its tolerance that an element's difference takes: 1 is the limit.
    sqnr
        The least ratio of signal to quantization noise of an output of a quantized program, in dB, at most `MOST`;
        see `Nearness`.
    unseen
        Parts of the program that were not judged operator by operator, and why; empty for none.
    """

    error: float
    tolerance: float
    used: float
    sqnr: float | None = None
    unseen: str | None = None

    @classmethod
    def measure(cls, lowered: Lowered) -> Accuracy | None:
        """Measure a program; an output of another shape than is expected is left out. None if it was not run."""
        if not lowered.samples:
            return None
        error = tolerance = used = 0.0
        for sample in lowered.samples:
            for index, (expected, actual) in enumerate(zip(sample.expected, sample.outputs, strict=False)):
                if expected.shape != actual.shape:
                    continue
                allowed = lowered.tolerance(sample, index)
                deviation = Deviation(expected, actual, allowed)
                difference, used = deviation.differences(), max(used, deviation.used())
                tolerance = max(tolerance, lowered.imprecision(sample, index))
                sizes = lowered.sizes(sample, index)
                errors = np.divide(difference, sizes, out=np.zeros(difference.shape), where=sizes > 0.0)
                error = max(error, float(errors.max(initial=0.0)))
        ratios = [ratio for near in nearnesses(lowered) if (ratio := sqnr(near)) is not None]
        unseen = None
        if lowered.unseen is not None:
            unseen = "; ".join(f"{what}: {why}" for what, why in lowered.unseen)
        return cls(error, tolerance, used, min(ratios, default=None), unseen)


@dataclass(frozen=True)
class Nearness:
    """Distance of an output of a quantized program to the float model's, over all samples.

    Attributes
    ----------
    ratio
        Power of the signal over that of the difference, in dB; infinity where they are equal, minus infinity where the
        program gives a NaN or an infinity for a number. None without a signal, and for what is not measured by it.
    cosine
        Of the angle between the two; None for outputs that are exact, and where there is no ratio.
    off
        The largest value of an output that should have no signal.
    equal
        How many values of an output of integers are the float model's; None for others.
    odd
        How many values are not finite in one of the two alone.
    size
        Number of values, where some are counted.
    note
        Why nothing is measured: `EMPTY`, `OTHER_SHAPE`, or what a golden says instead.
    example
        The same on the example, which the quantizer calibrated with; None where it is the only sample, or no other.
    """

    ratio: float | None = None
    cosine: float | None = None
    off: float = 0.0
    equal: int | None = None
    odd: int = 0
    size: int = 0
    note: str = ""
    example: Nearness | None = None

    @property
    def sqnr(self) -> float | None:
        """The ratio on the example; over all samples where the example has none."""
        return self.ratio if self.example is None or self.example.ratio is None else self.example.ratio

    @classmethod
    def measure(cls, lowered: Lowered, index: int) -> Nearness:
        """Measure output number `index`."""
        pairs = [(sample.floats[index], sample.outputs[index]) for sample in lowered.samples]
        over_all = cls.of_pairs(pairs)
        if len(pairs) == 1 or over_all.ratio in (None, math.inf):
            return over_all
        return replace(over_all, example=cls.of_pairs(pairs[:1]))

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[Tensor, Tensor]]) -> Nearness:
        """Measure the actual outputs against the expected ones, over all pairs."""
        # Where the shape follows the values it may be another; a single number may have a dimension or none.
        if any(wanted.array().size != given.array().size for wanted, given in pairs):
            return cls(note=OTHER_SHAPE)
        wanted, given = (
            np.concatenate([each.wide().ravel() for each in side]) for side in zip(*pairs, strict=True)
        )
        if not wanted.size:
            return cls(note=EMPTY)
        if not all(each.dtype.startswith(("float", "complex")) for pair in pairs for each in pair):
            equal = sum(
                np.count_nonzero(one.array().ravel() == other.array().ravel()) for one, other in pairs
            )
            return cls(equal=equal, size=wanted.size)
        return _of_numbers(wanted, given)


Measured: TypeAlias = Nearness | Metric


def _of_numbers(wanted: npt.NDArray[Any], given: npt.NDArray[Any]) -> Nearness:
    """Return how near outputs are that are no integers."""
    meant, made = np.isfinite(wanted), np.isfinite(given)
    same = (wanted == given) | (np.isnan(wanted) & np.isnan(given))
    if same.all():
        return Nearness(math.inf)
    odd = np.count_nonzero(~(meant & made) & ~same)
    size = wanted.size if odd else 0
    if (meant & ~made).any():
        return Nearness(-math.inf, 0.0, odd=odd, size=size)
    signal, found = wanted[meant & made], given[meant & made]
    # Powers of large numbers are beyond float64.
    most = float(max(np.abs(signal).max(initial=0.0), np.abs(found).max(initial=0.0))) or 1.0
    signal, found = signal / most, found / most
    power, noise, other = (float(np.square(np.abs(each)).sum()) for each in (signal, signal - found, found))
    if not power:
        return Nearness(off=most if noise else 0.0, odd=odd, size=size)
    ratio = 10.0 * math.log10(power / noise) if noise else math.inf
    cosine = float(np.vdot(signal, found).real) / math.sqrt(power * other) if other else 0.0
    return Nearness(ratio, cosine, odd=odd, size=size)


def nearnesses(lowered: Lowered) -> Iterator[Nearness]:
    """Yield the distance of each output of a quantized program from the float model's; none for outputs not run.

    Of several methods, the outputs of one after those of the other.
    """
    for method in lowered.by_method():
        counts = {len(each) for sample in method.samples for each in (sample.floats, sample.outputs)}
        # Another number of outputs is wrong, and what corresponds to what is not known.
        if len(counts) == 1:
            yield from (Nearness.measure(method, index) for index in range(counts.pop()))


def worst(floats: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[int, float] | None:
    """Return the output that is farthest from the float model's, with its ratio in dB; None if none has a ratio."""
    pairs = enumerate(zip(floats, outputs, strict=False))
    found = [(ratio, index) for index, pair in pairs if (ratio := Nearness.of_pairs([pair]).sqnr) is not None]
    ratio, index = min(found, default=(None, 0))
    return None if ratio is None else (index, ratio)


# The fields of a manifest

_OF_TOLERANCE = " of the tolerance"
_FLOAT = r"-?(?:\d{1,9}(?:\.\d{1,9})?(?:e[-+]\d{1,3})?|inf)|nan"
_COUNT = r"\d{1,15}"
_NEARNESS = re.compile(
    rf"(?:(?P<exact>exact)|(?P<equal>{_COUNT}) of (?P<of>{_COUNT}) equal|(?:(?:sqnr )?(?:over )?(?P<ratio>{_FLOAT}) dB"
    rf"(?:, cosine (?P<cosine>{_FLOAT}))?|no signal(?:, off by (?P<off>[1-9]\.\d{{1,9}}e[-+]\d{{1,3}}))?)"
    rf"(?:, (?P<odd>{_COUNT}) of (?P<size>{_COUNT}) not finite in one alone)?)(?:; example (?P<example>.+))?"
)
_METRIC = re.compile(f"metric ({_FLOAT}), eager ({_FLOAT}), at least ({_FLOAT})")


def text(found: Measured) -> str:
    """Return the value of a field with `FIELD`.

    >>> text(Metric("top_1", 0.91504, 0.9375, 0.9)), text(Nearness(41.26, 0.99996, example=Nearness(math.inf)))
    ('metric 0.915, eager 0.9375, at least 0.9', 'sqnr 41.3 dB, cosine 0.99996; example exact')
    """
    if isinstance(found, Metric):
        return f"metric {found.value:.4g}, eager {found.eager:.4g}, at least {found.bound:.4g}"
    if found.equal is not None:
        return f"{found.equal} of {found.size} equal"
    if found.note:
        return found.note
    if found.ratio is not None and found.cosine is None:
        return _ratio(found)
    odd = f", {found.odd} of {found.size} not finite in one alone" if found.odd else ""
    if found.ratio is None:
        return "no signal" + (f", off by {found.off:.2e}" if found.off else "") + odd
    example = f"; example {_ratio(found.example)}" if found.example is not None else ""
    return f"sqnr {_ratio(found)}, cosine {found.cosine:.5f}{odd}{example}"


def _ratio(found: Nearness) -> str:
    if found.ratio is None:
        return text(found)
    if found.ratio == math.inf and found.cosine is None:
        return "exact"
    return f"{found.ratio:.1f} dB" if found.ratio < MOST else f"over {MOST:.0f} dB"


def read(field: str, text: str) -> Measured:
    """Return what a value of `field` says, as far as its digits go: the reverse of `text`.

    >>> read("accuracy 0", "3 of 4 equal") == Nearness(equal=3, size=4)
    True
    """
    if metric := _METRIC.fullmatch(text):
        return Metric(field.removeprefix(FIELD), *map(float, metric.groups()))
    found = _NEARNESS.fullmatch(text)
    if found is None:
        return Nearness(note=text)
    ratio, cosine = (float(found[name]) if found[name] else None for name in ("ratio", "cosine"))
    return Nearness(
        math.inf if found["exact"] else ratio,
        cosine,
        float(found["off"] or 0.0),
        int(found["equal"]) if found["equal"] else None,
        int(found["odd"] or 0),
        int(found["of"] or found["size"] or 0),
        example=cast("Nearness", read(field, found["example"])) if found["example"] else None,
    )


def as_recorded(used: float) -> float:
    """Return the part of its tolerance that an error takes in the digits of a golden."""
    return float(f"{used:.3g}")


def error(used: float) -> str:
    """Return the value of `ERROR` for the part of its tolerance that the error of a program takes.

    >>> error(0.30249), read_error(error(0.30249)), read_error("none")
    ('0.302 of the tolerance', 0.302, None)
    """
    return f"{used:.3g}{_OF_TOLERANCE}"


def read_error(text: str) -> float | None:
    """Return the part that a value of `ERROR` says; None where it says none."""
    number = text.removesuffix(_OF_TOLERANCE)
    return float(number) if re.fullmatch(_FLOAT, number) else None


# Two of them


def sqnr(found: Measured) -> float | None:
    """Return the SQNR of an output in dB, on the example, at most `MOST`; None where it has none."""
    ratio = found.sqnr if isinstance(found, Nearness) else None
    return None if ratio is None else min(MOST, ratio)


def same(one: Measured, other: Measured) -> bool:
    """Return whether two values of a field differ only as they may between machines.

    >>> same(Nearness(41.3, 0.99996), Nearness(41.8, 0.99997)), same(Nearness(41.3), Nearness(41.9))
    (True, False)
    >>> same(Nearness(equal=63, size=64), Nearness(equal=64, size=64))
    True
    >>> metric = Metric("top_1", 0.915, 0.9375, 0.9)
    >>> same(metric, replace(metric, value=0.918)), same(metric, replace(metric, bound=0.8))
    (True, False)
    """
    if isinstance(one, Metric) and isinstance(other, Metric):
        return one.bound == other.bound and _near(one.value, other.value) and _near(one.eager, other.eager)
    if isinstance(one, Metric) or isinstance(other, Metric):
        return False
    mine, its = _levels(one), _levels(other)
    # Outputs that are exact over all samples are exact on the example.
    if mine and its and [MOST] in (mine, its):
        mine, its = (each * max(len(mine), len(its)) if each == [MOST] else each for each in (mine, its))
    kinds = [(len(levels), near.note, near.equal is None) for near, levels in ((one, mine), (other, its))]
    if kinds[0] != kinds[1] or len({near.size for near in (one, other) if near.size}) > 1:
        return False
    # Each has one decimal: what is a step apart may come out a little more.
    near = all(
        level == also or abs(level - also) < STEP + 0.01 for level, also in zip(mine, its, strict=True)
    )
    counts = ((one.equal or 0) - (other.equal or 0), one.odd - other.odd)
    return near and all(abs(count) <= max(1.0, SHARE * max(one.size, other.size)) for count in counts)


def is_worse(before: Measured, after: Measured) -> bool:
    """Return whether the second of two different values of a field is worse.

    >>> is_worse(Nearness(41.3), Nearness(35.2)), is_worse(Nearness(equal=3, size=9), Nearness(equal=9, size=9))
    (True, False)
    >>> is_worse(Metric("top_1", 0.9, 0.9, 0.5), Metric("top_1", 0.8, 0.9, 0.5))
    True
    """
    if isinstance(before, Metric) and isinstance(after, Metric):
        return not after.value >= before.value
    had, has = (
        (_levels(each), each.equal or 0, -each.odd) if isinstance(each, Nearness) else ([], 0, 0)
        for each in (before, after)
    )
    return has < had


def fell(before: float, after: float) -> bool:
    """Return whether a ratio in dB fell by more than `STEP`, in the one decimal that goldens record.

    >>> fell(40.4, 40.2), fell(40.4, 39.9), fell(40.44, 39.76)
    (False, False, True)
    """
    # A difference of decimals is not exact.
    return round(before, 1) - round(after, 1) > STEP + 0.01


def _near(one: float, other: float) -> bool:
    """Return whether two numbers differ by at most a small part of the larger, or of 1."""
    # NaN is NaN.
    return str(one) == str(other) or abs(one - other) <= SHARE * max(abs(one), abs(other), 1.0)


def _levels(near: Nearness) -> list[float]:
    """Return its ratios in dB, over all samples and on the example.

    A value that should be zero and is not has the ratio of one to it.
    """
    found = [
        each for each in (near, near.example) if each is not None and (each.ratio is not None or each.off)
    ]
    return [-20.0 * math.log10(each.off) if each.ratio is None else min(MOST, each.ratio) for each in found]
