"""Summaries of constants too large for a golden: minimum, maximum and number of distinct values.

Everything runs in pieces that fit a cache, without a copy of the constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from executorch_goldens.decode.constant import Array, Constant

#: Numbers handled at once: a quarter of a megabyte of FP32, within any second-level cache.
PIECE = 1 << 16
#: Numbers of more than 16 bits are counted exactly up to this many distinct ones. Counting the millions of a
#: float weight would take far longer than hashing them, and tells a reviewer nothing that "more than" does
#: not.
COUNTED = 1024
#: When so few codes of a narrow type have not occurred yet, looking for each is faster than marking all that occur.
FEW = 8


@dataclass(frozen=True)
class ConstantSummary:
    """Extremes and variety of a constant.

    Attributes
    ----------
    minimum, maximum
        Stored bits of the smallest and the largest number, one each; empty where every number is a NaN. Minus
        zero counts as smaller than zero, so that the answer does not depend on the order in which a CPU
        compares.
    nans
        Number of NaNs.
    distinct
        Number of different bit patterns, at most ``COUNTED + 1`` for types of more than 16 bits.
    exact
        Whether `distinct` is the number, or only a lower bound.
    """

    minimum: Array
    maximum: Array
    nans: int
    distinct: int
    exact: bool


def summarize(constant: Constant) -> ConstantSummary:
    """Return the summary of a constant of at least one number."""
    return _narrow(constant) if constant.codec.bits <= 16 else _wide(constant)


def _pieces(constant: Constant) -> Iterator[Array]:
    for start in range(0, constant.size, PIECE):
        yield constant.codes(start, start + PIECE)


def _narrow(constant: Constant) -> ConstantSummary:
    """Summarise by marking which of at most 65536 codes occur."""
    seen = _seen(constant).astype(constant.codec.codes)
    numbers = constant.codec.numbers(seen)
    is_nan = numbers != numbers
    nans = 0
    if is_nan.any():
        nan_codes = seen[is_nan]
        nans = sum(int(np.isin(piece, nan_codes).sum()) for piece in _pieces(constant))
    kept, numbers = seen[~is_nan], numbers[~is_nan]
    if not len(kept):
        return ConstantSummary(kept, kept, nans, len(seen), exact=True)
    low, high = _first(kept, numbers, numbers.min(), True), _first(kept, numbers, numbers.max(), False)
    return ConstantSummary(low, high, nans, len(seen), exact=True)


def _seen(constant: Constant) -> Array:
    """Return the codes that occur, ascending."""
    marks = np.zeros(1 << constant.codec.bits, np.bool_)
    for piece in _pieces(constant):
        unseen = np.flatnonzero(~marks)
        if not len(unseen):
            break
        if len(unseen) <= FEW:
            # As Python integers: compared with numpy's, the piece would be widened first.
            for code in unseen.tolist():
                marks[code] = (piece == code).any()
        else:
            marks[piece] = True
    return np.flatnonzero(marks)


def _wide(constant: Constant) -> ConstantSummary:
    """Summarise piece by piece; give up counting when there is too much to count."""
    lows: list[Any] = []
    highs: list[Any] = []
    nans = 0
    for piece in _pieces(constant):
        numbers = constant.codec.numbers(piece)
        low, high = numbers.min(), numbers.max()
        if high != high:
            kept = numbers[numbers == numbers]
            nans += len(numbers) - len(kept)
            if not len(kept):
                continue
            low, high = kept.min(), kept.max()
        lows.append(low)
        highs.append(high)
    distinct = _distinct(constant)
    none: Array = np.empty(0, constant.codec.codes)
    return ConstantSummary(
        minimum=_find(constant, min(lows), True) if lows else none,
        maximum=_find(constant, max(highs), False) if highs else none,
        nans=nans,
        distinct=distinct,
        exact=distinct <= COUNTED,
    )


def _distinct(constant: Constant) -> int:
    """Count the different codes, up to one more than `COUNTED`."""
    seen: Array = np.empty(0, constant.codec.codes)
    start, length = 0, 2 * COUNTED
    while start < constant.size and len(seen) <= COUNTED:
        seen = np.union1d(seen, constant.codes(start, start + length))
        start += length
        length = min(2 * length, PIECE)
    return min(len(seen), COUNTED + 1)


def _find(constant: Constant, value: Any, negative: bool) -> Array:
    """Return the code of a number that occurs; of the zeros, one with the preferred sign if there is one."""
    found: Array = np.empty(0, constant.codec.codes)
    for piece in _pieces(constant):
        numbers = constant.codec.numbers(piece)
        at = np.flatnonzero(numbers == value)
        if not len(at):
            continue
        found = _first(piece[at], numbers[at], value, negative)
        if (
            value != 0
            or numbers.dtype.kind != "f"
            or np.signbit(constant.codec.numbers(found))[0] == negative
        ):
            break
    return found


def _first(codes: Array, numbers: Array, value: Any, negative: bool) -> Array:
    """Return the first code of the number `value`; of the zeros, one with the preferred sign if there is one."""
    at = np.flatnonzero(numbers == value)
    if value == 0 and numbers.dtype.kind == "f":
        preferred = at[np.signbit(numbers[at]) == negative]
        at = preferred if len(preferred) else at
    return np.asarray(codes[at[:1]])
