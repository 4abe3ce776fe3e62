"""Tensors as pictures: heat maps of small ones, histograms of large ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from executorch_goldens.artifact import Tensor
from executorch_goldens.decode.difference import distances
from executorch_goldens.decode.numbers import read_number
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.labels import OF_RUN, OF_TOOLCHAINS
from executorch_goldens.goldens.outline import OutlineValue
from executorch_goldens.results.evidence import OUTPUT, Array, Evidence, ShownTensor
from executorch_goldens_plugins.report.operators import Listing

#: A larger tensor is shown as a histogram: its squares would be smaller than a finger or a pointer finds.
MOST_SQUARES = 1024
BARS = 32
#: Squares beside each other that a phone shows at their size.
WIDEST = 20
#: Pixels of a square: those of a small tensor are large. A picture of few columns is this wide, and of few rows this
#: high, unless its squares were too large or too small.
SMALLEST, LARGEST, WIDTH, HEIGHT = 8, 40, 300, 480
#: Squares that the gap between two channels is wide.
CHANNEL_GAP = 0.5


@dataclass(frozen=True)
class Square:
    """An element: its column and row in a picture, its position in the tensor, its value, and how strong it is shown.

    Attributes
    ----------
    strength
        A number from -1 to 1, 0 for no colour; NaN for what is no finite number.
    """

    column: float
    row: float
    text: str
    strength: float
    apart: bool = False


@dataclass(frozen=True)
class Picture:
    """A tensor, or the difference of two.

    Attributes
    ----------
    title
        ``golden``, ``now``, ``difference``...
    facts
        A summary: how many numbers, the least, the largest.
    squares
        Squares of a small tensor.
    across
        Elements of the last dimension.
    largest
        The value of the strongest colour.
    bars
        Bars of a large one: how many numbers are in each of `BARS` equal parts between `least` and `most`.
    """

    title: str
    facts: str
    squares: Sequence[Square] = ()
    across: int = 1
    largest: float = 0.0
    bars: Sequence[int] = ()
    least: float = 0.0
    most: float = 0.0

    @property
    def columns(self) -> float:
        return 1 + max((square.column for square in self.squares), default=0)

    @property
    def rows(self) -> float:
        return 1 + max((square.row for square in self.squares), default=0)

    @property
    def width(self) -> float:
        """Pixels, of which a page may show fewer."""
        side = min(WIDTH / self.columns, HEIGHT / self.rows)
        return self.columns * min(max(side, SMALLEST), LARGEST)


@dataclass(frozen=True)
class PicturedTensor:
    """A tensor of a cell's page.

    Attributes
    ----------
    lines
        Description of a side whose numbers are unknown.
    """

    name: str
    pictures: Sequence[Picture]
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Error:
    """Error of an output against eager, and its tolerance.

    Attributes
    ----------
    used
        The largest part of its tolerance that an element takes; infinity where it has none.
    apart, size
        Number of elements that are beyond their tolerance, and of all.
    """

    name: str
    sample: str
    variation: str
    error: float
    tolerance: float
    used: float
    apart: int
    size: int


def errors(evidence: Evidence) -> Iterator[Error]:
    """Yield each output against its tolerance."""
    for kept in evidence.tensors:
        if kept.kind == OUTPUT and (deviation := kept.deviation) is not None:
            difference = deviation.differences()
            yield Error(
                *(kept.name, kept.where, kept.variation),
                error=float(difference.max(initial=0.0)),
                tolerance=float(kept.tolerance.max(initial=0.0)),
                used=deviation.used(),
                apart=int(np.count_nonzero(difference > kept.tolerance)),
                size=difference.size,
            )


def beyond_tolerance(evidence: Evidence, made: str) -> Iterator[PicturedTensor]:
    """Yield the values and outputs that exceed their tolerance, beside eager's."""
    for kept in evidence.tensors:
        if (deviation := kept.deviation) is None:
            continue
        apart = deviation.differences() > deviation.tolerance
        if apart.any():
            name = f"{kept.name}, sample {kept.where}, {kept.variation}"
            yield PicturedTensor(name, pictures(kept.expected, kept.actual, ("eager", made), apart))


def constants(
    listings: Iterable[Listing], labels: tuple[str, str], evidence: Evidence
) -> Iterator[PicturedTensor]:
    """Yield the constants in delegates that two artifacts do not have in common.

    Parameters
    ----------
    labels
        The names of the artifacts: ``golden`` and ``now``, ``base`` and ``head``, or two variations.
    """
    kept = {(each.where, each.name, each.variation): each for each in evidence.tensors}
    for listing in listings:
        for now, *pair in _differing(listing):
            one, other = (
                _numbers(value, kept, listing.delegate, label, evidence)
                for value, label in zip(pair, labels, strict=True)
            )
            yield _constant(f"{listing.delegate}: {now}", (pair[0], pair[1]), (one, other), labels)


def _differing(listing: Listing) -> Iterator[tuple[str, OutlineValue, OutlineValue]]:
    """Yield the constants that differ between the two graphs of a delegate, with their name in the second."""
    for was, now in listing.names.items():
        old = listing.before.values.get(was) if listing.before is not None else None
        new = listing.after.values.get(now)
        if old is not None and new is not None and _differ(old, new):
            yield now, old, new


def _differ(one: OutlineValue, other: OutlineValue) -> bool:
    if one.contents is None or other.contents is None:
        return False
    return (one.type, one.contents.sha256) != (other.type, other.contents.sha256)


def _constant(
    name: str,
    values: tuple[OutlineValue, OutlineValue],
    numbers: tuple[Array | None, Array | None],
    labels: tuple[str, str],
) -> PicturedTensor:
    one, other = numbers
    lines = [
        f"{label}: {value.type}" + (f", {_facts(value)}" if held is None else "")
        for label, value, held in zip(labels, values, numbers, strict=True)
    ]
    if one is not None and other is not None and one.shape == other.shape:
        return PicturedTensor(name, pictures(one, other, labels), lines)
    alone = [picture(array, label) for array, label in zip(numbers, labels, strict=True) if array is not None]
    return PicturedTensor(name, alone, lines)


def _facts(value: OutlineValue) -> str:
    """Return a text's summary of a constant whose numbers it does not list."""
    facts = value.contents.facts if value.contents is not None else {}
    return ", ".join(f"{name} {text}" for name, text in facts.items() if name != "sha256")


def _numbers(
    value: OutlineValue,
    kept: Mapping[tuple[str, str, str], ShownTensor],
    where: str,
    label: str,
    evidence: Evidence,
) -> Array | None:
    """Return the numbers of a constant where its text lists them, or a run kept them; in its shape."""
    listed = value.contents.facts.get("values") if value.contents is not None else None
    if listed is not None:
        shape = [int(length) for length in value.type.rpartition("[")[2][:-1].split(",") if length]
        numbers = np.array([read_number(text) for text in listed.split()])
        return numbers.reshape(shape) if numbers.size == math.prod(shape) else numbers
    if label in (OF_RUN.old, OF_TOOLCHAINS.old):
        return None
    # Equal values of all variations are kept once, from the first.
    names = [label, *(name for group in evidence.agreeing for name in group)]
    found = (kept.get((where, value.name, name)) for name in names)
    return next((each.actual for each in found if each is not None), None)


def pictures(one: Array, other: Array, labels: tuple[str, str], apart: Array | None = None) -> list[Picture]:
    """Return two tensors of one shape on one scale, and their difference.

    Parameters
    ----------
    apart
        The elements that count as different; None for all that are not equal.
    """
    if apart is None:
        apart = _distance(other, one) > 0
    left, right = _wide(one), _wide(other)
    scale = _range(np.concatenate([left.ravel(), right.ravel()]))
    difference = np.where(one > other, -1.0, 1.0) * distances(other, one)
    return [
        picture(left, labels[0], scale, apart),
        picture(right, labels[1], scale, apart),
        picture(difference, "difference", None, apart),
    ]


def picture(
    array: Array, title: str, scale: tuple[float, float] | None = None, apart: Array | None = None
) -> Picture:
    """Return a tensor as a heat map, or as a histogram where it is large."""
    numbers = _wide(array)
    own = _range(numbers)
    least, most = scale or own
    facts = f"{list(numbers.shape)}, {own[0]:g} to {own[1]:g}"
    if title == "difference" and apart is not None:
        facts += f", {np.count_nonzero(apart)} of {numbers.size} differ"
    if numbers.size <= MOST_SQUARES:
        largest = max(abs(least), abs(most))
        squares = list(_squares(numbers, largest, apart))
        across = numbers.shape[-1] if numbers.ndim else 1
        return Picture(title, facts, squares, across=across, largest=largest)
    finite = numbers[np.isfinite(numbers)]
    bars = np.histogram(finite, BARS, (least, most) if most > least else (least - 0.5, least + 0.5))[0]
    return Picture(title, facts, bars=bars.tolist(), least=least, most=most)


def _squares(numbers: Array, largest: float, apart: Array | None) -> Iterator[Square]:
    # Where all differ, marks would hide what they mark.
    marked = np.zeros(numbers.shape, bool) if apart is None or apart.all() else apart
    for place, (index, value) in zip(places(numbers.shape), np.ndenumerate(numbers), strict=True):
        if not math.isfinite(value):
            strength = math.nan
        else:
            strength = float(value) / largest if largest else 0.0
        yield Square(*place, f"{list(index)} = {value:.9g}", strength, bool(marked[index]))


def places(shape: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield the column and the row of each element: the last two dimensions are a plane, planes have gaps between them.

    >>> list(places([2, 1, 2]))
    [(0.0, 0.0), (1.0, 0.0), (2.5, 0.0), (3.5, 0.0)]
    """
    across = max(shape[-1] if shape else 1, 1)
    down = max(shape[-2] if len(shape) > 1 else 1, 1)
    beside = max(int((WIDEST + CHANNEL_GAP) // (across + CHANNEL_GAP)), 1)
    for at in range(math.prod(shape)):
        plane, in_plane = divmod(at, across * down)
        row, column = divmod(in_plane, across)
        if len(shape) < 2:
            row, column = divmod(column, WIDEST)
        x = (plane % beside) * (across + CHANNEL_GAP) + column
        yield float(x), float((plane // beside) * (down + CHANNEL_GAP) + row)


def _wide(array: Array) -> Array:
    return np.abs(array) if np.iscomplexobj(array) else array.astype(np.float64)


def _range(numbers: Array) -> tuple[float, float]:
    finite = numbers[np.isfinite(numbers)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _distance(actual: Array, expected: Array) -> Array:
    return Deviation(Tensor.from_array(expected), Tensor.from_array(actual)).differences()
