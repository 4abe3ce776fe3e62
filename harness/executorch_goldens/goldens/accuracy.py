"""Accuracy in goldens: distance to eager, its tolerance, and SQNR of quantized programs against float.

The quantized eager graph, which a quantized program has to match, holds the same scales as the program: a wrong scale
is wrong in both. So the outputs of the program are compared with those of the model before it was quantized as well, by
the ratio of the signal's power to that of the difference (SQNR, in dB) and by the cosine of the angle between the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
#: Prefix of a manifest's field of an output.
FIELD = "accuracy "
#: The field with how near a program is to eager.
ERROR = "error"
#: Words of the field on checks for a program whose outputs must match eager's.
EQUAL = "equal to the last bit"
#: In the text of a `Nearness`: a ratio in dB, what is exact, the size of what should be nothing; a count out of all.
_RATIO = re.compile(r"(-inf|-?\d{1,9}(?:\.\d{1,9})?) dB|(exact)|off by ([1-9]\.\d{1,9}e[-+]\d{1,3})")
_NUMBER = r"-?(?:\d{1,9}(?:\.\d{1,9})?(?:e[-+]\d{1,3})?|inf)|nan"
_OF_TOLERANCE = " of the tolerance"
_PART = re.compile(r"\d{1,9}(?:\.\d{1,9})?(?:e[-+]\d{1,3})?|inf")
#: The value of a task's metric, that of the eager model, and its bound.
_METRIC = re.compile(r"metric (NUMBER), eager (NUMBER), at least (NUMBER)".replace("NUMBER", _NUMBER))
_COUNT = re.compile(r"(\d{1,15}) of (\d{1,15}) (equal|not finite)")


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
        ratios = [min(MOST, near.sqnr) for near in nearnesses(lowered) if near.sqnr is not None]
        inside = lowered.inside
        unseen = "; ".join(f"{what}: {why}" for what, why in inside.unseen) if inside is not None else None
        return cls(error, tolerance, used, min(ratios, default=None), unseen)


@dataclass(frozen=True)
class Nearness:
    """Distance of an output of a quantized program to the float model's.

    Attributes
    ----------
    text
        The text of a golden's manifest: over all samples, then on the example, which the quantizer calibrated with.
    sqnr
        Power of the signal over that of the difference on the example, in dB; infinity where they are equal, minus
        infinity where the program gives a NaN or an infinity for a number. Over all samples where the example has no
        signal; None where that has none, or where there is nothing to measure it by.
    """

    text: str
    sqnr: float | None = None

    @classmethod
    def measure(cls, lowered: Lowered, index: int) -> Nearness:
        """Measure output number `index`."""
        pairs = [(sample.floats[index], sample.outputs[index]) for sample in lowered.samples]
        over_all = cls.of_pairs(pairs)
        if len(pairs) == 1 or over_all.sqnr in (None, math.inf):
            return over_all
        example = cls.of_pairs(pairs[:1])
        text = f"{over_all.text}; example {example.text.removeprefix('sqnr ').partition(', cosine')[0]}"
        return cls(text, over_all.sqnr if example.sqnr is None else example.sqnr)

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[Tensor, Tensor]]) -> Nearness:
        """Measure the actual outputs against the expected ones, over all pairs."""
        # Where the shape follows the values it may be another; a single number may have a dimension or none.
        if any(wanted.array().size != given.array().size for wanted, given in pairs):
            return cls("of another shape than the float model's")
        wanted, given = (
            np.concatenate([each.wide().ravel() for each in side]) for side in zip(*pairs, strict=True)
        )
        if not wanted.size:
            return cls("empty")
        if not all(each.dtype.startswith(("float", "complex")) for pair in pairs for each in pair):
            equal = sum(
                np.count_nonzero(one.array().ravel() == other.array().ravel()) for one, other in pairs
            )
            return cls(f"{equal} of {wanted.size} equal")
        return cls(*_of_numbers(wanted, given))


def _of_numbers(wanted: npt.NDArray[Any], given: npt.NDArray[Any]) -> tuple[str, float | None]:
    """Return the text and the ratio of a `Nearness`, of outputs that are no integers."""
    meant, made = np.isfinite(wanted), np.isfinite(given)
    same = (wanted == given) | (np.isnan(wanted) & np.isnan(given))
    if same.all():
        return "exact", math.inf
    odd = np.count_nonzero(~(meant & made) & ~same)
    suffix = f", {odd} of {wanted.size} not finite in one alone" if odd else ""
    if (meant & ~made).any():
        return f"sqnr -inf dB, cosine 0.00000{suffix}", -math.inf
    signal, found = wanted[meant & made], given[meant & made]
    # Powers of large numbers are beyond float64.
    most = float(max(np.abs(signal).max(initial=0.0), np.abs(found).max(initial=0.0))) or 1.0
    signal, found = signal / most, found / most
    power, noise, other = (float(np.square(np.abs(each)).sum()) for each in (signal, signal - found, found))
    if not power:
        return ("no signal" + (f", off by {most:.2e}" if noise else "") + suffix), None
    sqnr = 10.0 * math.log10(power / noise) if noise else math.inf
    cosine = float(np.vdot(signal, found).real) / math.sqrt(power * other) if other else 0.0
    shown = f"{sqnr:.1f} dB" if sqnr < MOST else f"over {MOST:.0f} dB"
    return f"sqnr {shown}, cosine {cosine:.5f}{suffix}", sqnr


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


def error(used: float) -> str:
    """Return the value of `ERROR` for the part of its tolerance that the error of a program takes.

    >>> error(0.30249), read_error(error(0.30249)), read_error("none")
    ('0.302 of the tolerance', 0.302, None)
    """
    return f"{used:.3g}{_OF_TOLERANCE}"


def read_error(text: str) -> float | None:
    """Return the part that a value of `ERROR` says; None where it says none."""
    number = text.removesuffix(_OF_TOLERANCE)
    return float(number) if _PART.fullmatch(number) else None


def measure(metric: Metric) -> str:
    """Return the value of the field of a metric.

    >>> measure(Metric("top_1", 0.91504, 0.9375, 0.9))
    'metric 0.915, eager 0.9375, at least 0.9'
    """
    return f"metric {metric.value:.4g}, eager {metric.eager:.4g}, at least {metric.bound:.4g}"


def sqnrs(texts: Iterable[str]) -> Iterator[float]:
    """Yield the SQNR of each field of a manifest that has one, in dB, on the example; `MOST` for exact outputs.

    >>> list(sqnrs(["sqnr 41.3 dB, cosine 0.99996; example 44.0 dB", "exact", "7 of 8 equal"]))
    [44.0, 100.0]
    """
    for text in texts:
        found = [
            MOST if exact else float(ratio) for ratio, exact, _ in _RATIO.findall(text) if ratio or exact
        ]
        if found:
            yield found[-1]


def same(one: str, other: str) -> bool:
    """Return whether two values of a field differ only as they may between machines.

    >>> same("sqnr 41.3 dB, cosine 0.99996", "sqnr 41.8 dB, cosine 0.99997"), same("sqnr 41.3 dB", "sqnr 41.9 dB")
    (True, False)
    >>> same("63 of 64 equal", "64 of 64 equal"), same("63 of 64 equal", "61 of 64 equal")
    (True, False)
    >>> same("metric 0.915, eager 0.9375, at least 0.9", "metric 0.918, eager 0.9375, at least 0.9")
    True
    >>> same("metric 0.915, eager 0.9375, at least 0.9", "metric 0.915, eager 0.9375, at least 0.8")
    False
    """
    if (metric := _METRIC.fullmatch(one)) and (its := _METRIC.fullmatch(other)):
        return metric[3] == its[3] and all(_near(metric[at], its[at]) for at in (1, 2))
    (ratios, counts), (others, other_counts) = _measures(one), _measures(other)
    # Outputs that are exact over all samples are exact on the example.
    ratios, others = (
        each * longer if each == [MOST] else each
        for each, longer in ((ratios, len(others)), (others, len(ratios)))
    )
    if len(ratios) != len(others) or (not ratios and not counts and not other_counts and one != other):
        return False
    # Each has one decimal: what is a step apart may come out a little more.
    near = all(mine == its or abs(mine - its) < STEP + 0.01 for mine, its in zip(ratios, others, strict=True))
    return near and all(_like(counts.get(what), other_counts.get(what)) for what in {*counts, *other_counts})


def is_worse(before: str, after: str) -> bool:
    """Return whether the second of two different values of a field is worse.

    >>> is_worse("sqnr 41.3 dB, cosine 0.9", "sqnr 35.2 dB, cosine 0.9"), is_worse("3 of 9 equal", "9 of 9 equal")
    (True, False)
    >>> is_worse("metric 0.9, eager 0.9, at least 0.5", "metric 0.8, eager 0.9, at least 0.5")
    True
    """
    if (metric := _METRIC.fullmatch(before)) and (its := _METRIC.fullmatch(after)):
        return not float(its[1]) >= float(metric[1])
    (ratios, counts), (others, other_counts) = _measures(before), _measures(after)
    had, has = (each.get("equal", (0, 1))[0] for each in (counts, other_counts))
    odd = other_counts.get("not finite", (0, 1))[0] - counts.get("not finite", (0, 1))[0]
    return (others, has, -odd) < (ratios, had, 0)


def fell(before: float, after: float) -> bool:
    """Return whether a ratio in dB fell by more than `STEP`, in the one decimal that goldens record.

    >>> fell(40.4, 40.2), fell(40.4, 39.9), fell(40.44, 39.76)
    (False, False, True)
    """
    # A difference of decimals is not exact.
    return round(before, 1) - round(after, 1) > STEP + 0.01


def _near(one: str, other: str) -> bool:
    """Return whether two numbers differ by at most a small part of the larger, or of 1."""
    value, also = float(one), float(other)
    return one == other or abs(value - also) <= SHARE * max(abs(value), abs(also), 1.0)


def _like(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    """Return whether two counts, each with its total, differ by at most one or a small part of all; None is 0."""
    (count, total), (also, of) = one or (0, other[1] if other else 0), other or (0, one[1] if one else 0)
    return total == of and abs(count - also) <= max(1.0, SHARE * total)


def _measures(text: str) -> tuple[list[float], dict[str, tuple[int, int]]]:
    """Return the ratios in dB that a text has, and its counts with their totals.

    A value that should be zero and is not has the ratio of one to it.
    """
    ratios = [
        MOST if exact else float(ratio) if ratio else -20.0 * math.log10(float(off))
        for ratio, exact, off in _RATIO.findall(text)
    ]
    return ratios, {what: (int(count), int(total)) for count, total, what in _COUNT.findall(text)}
