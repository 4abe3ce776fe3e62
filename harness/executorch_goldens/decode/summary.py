"""Summaries of constants too large for a golden: minimum, maximum and number of distinct values.

Everything runs in pieces that fit a cache, without a copy of the constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from executorch_goldens.decode.constant import Array, Constant

#: Numbers handled at once: a quarter of a megabyte of FP32, within any second-level cache.
PIECE = 1 << 16
#: Numbers of more than 16 bits are counted exactly up to this many distinct ones. Counting the millions of a
#: float weight would take far longer than hashing them, and tells a reviewer nothing that "more than" does
#: not.
COUNTED = 1024


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
    codec = constant.codec
    is_narrow = codec.bits <= 16
    seen = _marked(constant) if is_narrow else _counted(constant)
    ends: Array = np.empty(0, codec.codes)
    has_nans = False
    # Of a narrow type, the codes that occur have the extremes.
    for codes in [seen] if is_narrow else _pieces(constant):
        nans = _are_nans(constant, codes)
        has_nans |= bool(nans.any())
        ends = _extremes(constant, np.concatenate([ends, codes[~nans]]))
    return ConstantSummary(
        minimum=ends[:1],
        maximum=ends[1:],
        nans=sum(int(_are_nans(constant, piece).sum()) for piece in _pieces(constant)) if has_nans else 0,
        distinct=len(seen),
        exact=is_narrow or len(seen) <= COUNTED,
    )


def _pieces(constant: Constant) -> Iterator[Array]:
    for start in range(0, constant.size, PIECE):
        yield constant.codes(start, start + PIECE)


def _marked(constant: Constant) -> Array:
    """Return the codes that occur, of at most 65536, ascending."""
    marks = np.zeros(1 << constant.codec.bits, np.bool_)
    for piece in _pieces(constant):
        marks[piece] = True
        if marks.all():
            break
    return np.flatnonzero(marks).astype(constant.codec.codes)


def _counted(constant: Constant) -> Array:
    """Return codes that occur, at most one more than `COUNTED`."""
    seen: Array = np.empty(0, constant.codec.codes)
    for piece in _pieces(constant):
        seen = np.union1d(seen, piece)[: COUNTED + 1]
        if len(seen) > COUNTED:
            break
    return seen


def _are_nans(constant: Constant, codes: Array) -> Array:
    numbers = constant.codec.numbers(codes)
    return np.asarray(numbers != numbers)


def _extremes(constant: Constant, codes: Array) -> Array:
    """Return the first of the codes of the smallest and of the largest number, none of no codes; none is a NaN."""
    if not len(codes):
        return codes
    numbers = constant.codec.numbers(codes)
    if numbers.dtype.kind == "f":
        # Their bits, as integers of the same order: minus zero is less than zero.
        bits = numbers.view(f"<i{numbers.itemsize}")
        numbers = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return codes[[numbers.argmin(), numbers.argmax()]]
