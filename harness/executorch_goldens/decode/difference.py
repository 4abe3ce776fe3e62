"""Differences of two tensors: the numbers a person needs to judge a changed constant or output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from executorch_goldens.decode.constant import Array, Constant, type_text
from executorch_goldens.decode.numbers import Double, Float32

#: numpy's kinds of dtypes of whole numbers.
WHOLE = frozenset("biu")
#: Number of differing elements that are shown, from the first.
SHOWN = 3
#: Elements compared at once, so that comparing large tensors does not double the memory they take.
PIECE = 1 << 18


@dataclass(frozen=True)
class TensorDifference:
    """The difference between two tensors.

    Attributes
    ----------
    dtypes, shapes
        Before and after.
    differing
        Number of elements that differ in any bit; None where the shapes do not allow comparing them.
    size
        Number of elements.
    largest, mean
        Largest absolute difference, and the mean one over all elements, the equal ones included, as upstream issues
        give it. Differences that are not finite do not count; None where none is.
    first
        Index, value before and value after of the first few differing elements.
    """

    dtypes: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    differing: int | None
    size: int
    largest: float | None
    mean: float | None
    first: tuple[tuple[tuple[int, ...], str, str], ...]

    def lines(self) -> Iterator[str]:
        """Yield a report: a line for the whole and one for each element shown."""
        types = list(map(type_text, self.dtypes, self.shapes))
        type_ = types[0] if types[0] == types[1] else f"{types[0]} -> {types[1]}"
        if self.differing is None:
            yield type_
            return
        size = f"{self.differing} of {self.size} differ"
        if self.largest is not None and self.mean is not None:
            size += f", max {self.largest:.6g}, mean {self.mean:.6g}"
        yield f"{type_}: {size}"
        for index, before, after in self.first:
            yield f"{list(index)}: {before} -> {after}"


def tensor_difference(before: Constant, after: Constant) -> TensorDifference | None:
    """Return how two tensors differ; None if dtype, shape and every bit are the same.

    NaNs with the same bits are the same; 0.0 and -0.0 are not.
    """
    dtypes, shapes = (before.dtype, after.dtype), (before.shape, after.shape)
    if shapes[0] != shapes[1]:
        return TensorDifference(dtypes, shapes, None, 0, None, None, ())
    left, right = before.array(), after.array()
    first: list[tuple[tuple[int, ...], str, str]] = []
    differing, total, finite, largest = 0, 0.0, 0, 0.0
    flat = left.reshape(-1), right.reshape(-1)
    for start in range(0, left.size, PIECE):
        a, b = (side[start : start + PIECE] for side in flat)
        at = np.flatnonzero(_differ(a, b))
        for offset in at[: SHOWN - len(first)].tolist():
            first.append((index_of(start + offset, left.shape), _text(a[offset]), _text(b[offset])))
        gaps = _gaps(a[at], b[at])
        differing += len(at)
        total += float(gaps.sum())
        finite += len(gaps)
        largest = max(largest, float(gaps.max(initial=0.0)))
    if not differing and dtypes[0] == dtypes[1]:
        return None
    return TensorDifference(
        dtypes,
        shapes,
        differing,
        left.size,
        largest=largest if finite else None,
        mean=total / left.size if finite else None,
        first=tuple(first),
    )


def index_of(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an element by its place in row-major order.

    >>> index_of(5, (2, 3))
    (1, 2)
    """
    return tuple(int(axis) for axis in np.unravel_index(flat, shape))


def _differ(a: Array, b: Array) -> Array:
    """Mark the elements with a differing bit or, for different types, a differing number."""
    if a.dtype != b.dtype:
        return np.asarray(a != b)
    if np.iscomplexobj(a):
        return _differ(a.real, b.real) | _differ(a.imag, b.imag)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.asarray(np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits))


def _gaps(a: Array, b: Array) -> Array:
    """Return the absolute differences that are finite."""
    gaps = distances(a, b)
    return np.asarray(gaps[np.isfinite(gaps)])


def distances(one: Array, other: Array) -> Array:
    """Return the absolute difference of each element as the nearest float64, NaN where it is undefined.

    Integers and booleans are subtracted as integers: float64 cannot hold those beyond 2**53.

    >>> distances(np.array([2**53 + 1, -(2**63)]), np.array([2**53 + 2, 2**63 - 1])).tolist()
    [1.0, 1.8446744073709552e+19]
    """
    kinds = {one.dtype.kind, other.dtype.kind}
    if kinds <= WHOLE:
        # Modulo 2**64: the larger less the smaller fits, whatever their signs.
        left, right = one.astype(np.uint64), other.astype(np.uint64)
        return np.asarray(np.where(one > other, left - right, right - left), np.float64)
    wide = np.complex128 if "c" in kinds else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.abs(one.astype(wide) - other.astype(wide)))


def _text(number: Any) -> str:
    if isinstance(number, np.float32 | np.float16):
        wide = np.float32(number)
        return str(Float32(int(wide.view(np.uint32))))
    return str(Double(number)) if isinstance(number, np.floating) else str(number.item())
