"""Tolerances of output elements, from the measured effect of rounding.

An output may hold numbers of different sizes side by side: boxes in pixels and scores of at most one, joined along an
axis. What rounding does to the large says nothing of the small. So elements are taken in groups: slices along an axis
whose largest values are far apart, and in each of these, slices along the other axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
#: Part of an output: along each axis the places that are in it; None for all, whose number may differ by sample.
Block: TypeAlias = tuple[NDArray[np.intp] | None, ...]

#: A little more than one code: codes times scale are float32, and so are their differences.
ONE_CODE = 1.001
#: The spread of what is rounded and was not seen to move: more than none.
TOUCHED = float(np.finfo(np.float32).tiny)
#: A few runs do not show the furthest that rounding can go.
MARGIN = 3.0
#: Slices are of different sizes where the largest value of one is so many times that of the next.
APART = 8.0
#: The movement seen in n elements is raised by this many n-ths: few show less than many do.
FEW = 8.0


@dataclass(frozen=True)
class Allowed:
    """The tolerance of an output in one sample.

    Attributes
    ----------
    reach
        The tolerance of each element.
    sizes
        The largest value of each element's group, in this sample and in the first.
    sizes_anywhere
        The same, in all samples.
    """

    reach: Array
    sizes: Array
    sizes_anywhere: Array


@dataclass(frozen=True)
class _Group:
    """Elements of one size.

    Attributes
    ----------
    blocks
        Where they are.
    around
        Mean movement of one of them by rounding.
    """

    blocks: tuple[Block, ...]
    around: float


def allowed(
    expected: Sequence[NDArray[Any]], spreads: Sequence[NDArray[Any]], code: float, bound: float
) -> list[Allowed]:
    """Return the tolerance of an output in each sample.

    Nothing may be off in a sample where no rounding touches it. Where no element was seen to move by more than a code,
    in any sample, it may be off by that. Elsewhere an element may be off by `MARGIN` times what it moved, or what those
    of its group that moved, in all samples, moved on average.

    Parameters
    ----------
    expected
        Expected output in each sample.
    spreads
        Movement of each element by rounding alone; none where that was not measured.
    code
        A little more than what one code is worth; 0 where the output is not quantized.
    bound
        The tolerance in any case, where it is rounded, as a part of the largest value.
    """
    values = [_finite(np.abs(each)) for each in expected]
    moved = [np.asarray(each, dtype=np.float64) for each in spreads]
    by_code = bool(code) and max((each.max(initial=0.0) for each in moved), default=0.0) <= code
    made = [Allowed(*(np.zeros(each.shape) for _ in range(3))) for each in values]
    for group in _groups(values, moved, code):
        sizes = [max(_largest(_part(each, block)) for block in group.blocks) for each in values]
        for number, one in enumerate(made):
            size = max(sizes[0], sizes[number])
            least = max(bound * size, code)
            for block in group.blocks:
                at = _at(one.reach, block)
                one.sizes[at], one.sizes_anywhere[at] = size, max(sizes)
                one.reach[at] = _reach(moved[number] if moved else None, at, group.around, least, by_code)
    return made


def _reach(
    moved: Array | None, at: tuple[Any, ...], around: float, least: float, by_code: bool
) -> Array | float:
    """Return how far the elements at a place may be off.

    Parameters
    ----------
    moved
        Movement of each element of the sample; None where that was not measured.
    around
        Mean movement of one of their group.
    least
        Their tolerance where any element of the sample moved.
    by_code
        Whether they may be off by no more than that.
    """
    if moved is None:
        return least
    if not moved.any():
        return 0.0
    if by_code:
        return least
    reach: Array = np.maximum(MARGIN * np.maximum(moved[at], around), least)
    return reach


def _groups(values: Sequence[Array], moved: Sequence[Array], code: float) -> Iterator[_Group]:
    """Yield the groups of an output.

    What is quantized has one scale, and a code is as much everywhere: it is one group. Elements that rounding
    leaves nothing say nothing by themselves: they go with the next larger. None is allowed more than it would be if all
    were one group.
    """
    whole: Block = (None,) * values[0].ndim
    of_all = _seen(moved, whole)
    around = _mean(of_all)
    if code or not of_all.size or any(each.ndim != len(whole) for each in values):
        yield _Group((whole,), around)
        return
    blocks = [(_size(values, block), block) for block in _split(values, whole, range(len(whole)))]
    blocks.sort(key=lambda each: -each[0])
    relative = _mean(
        np.concatenate([_seen(moved, block) / size for size, block in blocks if size] or [of_all])
    )

    def moves(size: float, together: Sequence[Block]) -> float:
        seen = np.concatenate([_seen(moved, block) for block in together])
        own = _mean(seen) * (1.0 + FEW / seen.size) if seen.size else 0.0
        return min(around, max(own, size * relative))

    groups: list[tuple[float, list[Block]]] = []
    for size, block in blocks:
        if groups and MARGIN * moves(size, [block]) >= size:
            groups[-1][1].append(block)
        else:
            groups.append((size, [block]))
    for size, together in groups:
        yield _Group(tuple(together), moves(size, together) if len(groups) > 1 else around)


def _split(values: Sequence[Array], block: Block, axes: Sequence[int]) -> Iterator[Block]:
    """Yield the parts of a block whose sizes are apart: along the axis that tells most, then along the others."""
    found: tuple[float, int, list[NDArray[np.intp]]] | None = None
    for axis in axes:
        if len({each.shape[axis] for each in values}) > 1:
            continue
        sizes = _sizes(values, block, axis)
        clusters = _clusters(sizes)
        if len(clusters) < 2:
            continue
        # How large the rest of its cluster is, for a slice on average: the less, the more the axis tells.
        left = sum(np.log2(sizes[each].max()) * each.size for each in clusters) / sizes.size
        if found is None or left < found[0]:
            found = (left, axis, clusters)
    if found is None:
        yield block
        return
    _, axis, clusters = found
    places = block[axis]
    for cluster in clusters:
        inside = cluster if places is None else places[cluster]
        part = (*block[:axis], inside, *block[axis + 1 :])
        yield from _split(values, part, [each for each in axes if each != axis])


def _clusters(sizes: Array) -> list[NDArray[np.intp]]:
    """Return the places of sizes that are near each other, by cluster; those of nothing go with the least.

    >>> [cluster.tolist() for cluster in _clusters(np.array([640.0, 1.0, 500.0, 0.0, 0.5]))]
    [[0, 2], [1, 4, 3]]
    """
    order = np.argsort(-sizes, kind="stable")
    ordered = sizes[order]
    ends = [
        number + 1
        for number, (one, other) in enumerate(itertools.pairwise(ordered))
        if other > 0.0 and one > APART * other
    ]
    return np.split(order, ends)


def _sizes(values: Sequence[Array], block: Block, axis: int) -> Array:
    """Return the largest value of each slice of a block along an axis."""
    beside = tuple(each for each in range(len(block)) if each != axis)
    largest = [_part(each, block).max(axis=beside, initial=0.0) for each in values]
    return np.asarray(np.max(largest, axis=0))


def _size(values: Sequence[Array], block: Block) -> float:
    return max(_largest(_part(each, block)) for each in values)


def _seen(moved: Sequence[Array], block: Block) -> Array:
    """Return the measured movements of a block's elements."""
    parts = [_part(each, block).ravel() for each in moved]
    together = np.concatenate(parts) if parts else np.zeros(0)
    return together[np.isfinite(together) & (together > TOUCHED)]


def _part(array: Array, block: Block) -> Array:
    return np.asarray(array[_at(array, block)])


def _at(array: Array, block: Block) -> tuple[Any, ...]:
    """Return the index of a block in an array."""
    if all(places is None for places in block):
        return (...,)
    lengths = zip(block, array.shape, strict=True)
    return np.ix_(*(np.arange(length) if places is None else places for places, length in lengths))


def _mean(moved: Array) -> float:
    return math.sqrt(np.square(moved).mean()) if moved.size else 0.0


def _finite(values: NDArray[Any]) -> Array:
    """Return values without non-finite ones: an infinity or a NaN would make every difference tolerable."""
    return np.where(np.isfinite(values), values, 0.0).astype(np.float64)


def _largest(values: Array) -> float:
    return float(values.max(initial=0.0))
