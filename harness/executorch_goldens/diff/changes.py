"""The kinds of difference between two artifacts and their decoded payloads, and the lines that report them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from executorch_goldens.decode.difference import TensorDifference
from executorch_goldens.decode.numbers import read_number

#: Longer values are cut at this many characters.
VALUE_LIMIT = 80
#: What a golden has of a program as a digest only (`executorch_goldens.goldens.program`), in words.
IN_DIGEST = "what goldens have as a digest only"
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes
    ----------
    where
        The graph, and the delegate it is in: ``main/main``, ``delegate forward/0: XNNGraph``.
    content
        False for differences of names, numbering, order and layout, which change nothing that is computed.
    """

    content: ClassVar[bool] = True
    where: str

    @property
    def is_of_order(self) -> bool:
        """True if it is one of names, numbering, order and layout, that of a graph's inputs and outputs included."""
        return not self.content

    @property
    def subject(self) -> str:
        """What differs: the difference begins with it."""
        raise NotImplementedError

    @property
    def general(self) -> str:
        """The same without the numbers in names, which are others in the next cell."""
        return _NUMBER.sub("…", self.subject)

    def lines(self) -> Iterator[str]:
        """Yield the lines of a report: the difference, then details."""
        raise NotImplementedError


@dataclass(frozen=True)
class Renamed(Change):
    """Values that differ only in name; `examples` holds the first few, before and after."""

    content: ClassVar[bool] = False
    count: int
    examples: tuple[tuple[str, str], ...]

    def lines(self) -> Iterator[str]:
        shown = ", ".join(f"{_cut(before)} -> {_cut(after)}" for before, after in self.examples)
        yield f"{self.count} renamed: {shown}{', ...' if self.count > len(self.examples) else ''}"


@dataclass(frozen=True)
class Reordered(Change):
    """Operators or values that differ only in their order.

    Attributes
    ----------
    moved
        The smallest set whose move explains the new order, by their names after the change.
    """

    content: ClassVar[bool] = False
    what: str
    moved: tuple[str, ...]
    total: int

    def lines(self) -> Iterator[str]:
        shown = ", ".join(self.moved[:3])
        yield f"{len(self.moved)} of {self.total} {self.what} moved: {shown}{', ...' * (len(self.moved) > 3)}"


@dataclass(frozen=True)
class LayoutChanged(Change):
    """Sizes, offsets and labels, which only follow from other differences; `examples` holds name, before and after."""

    content: ClassVar[bool] = False
    count: int
    examples: tuple[tuple[str, str, str], ...]

    def lines(self) -> Iterator[str]:
        shown = ", ".join(f"{name} {before} -> {after}" for name, before, after in self.examples)
        differences = "difference" if self.count == 1 else "differences"
        yield f"layout: {self.count} {differences}: {shown}{', ...' if self.count > len(self.examples) else ''}"


@dataclass(frozen=True)
class OperatorAdded(Change):
    """An operator that only the graph after has."""

    subject = "operator added"
    operator: str
    inputs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {self.operator} on {', '.join(self.inputs) or 'nothing'}"


@dataclass(frozen=True)
class OperatorRemoved(Change):
    """An operator that only the graph before has."""

    subject = "operator removed"
    operator: str
    inputs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {self.operator} on {', '.join(self.inputs) or 'nothing'}"


@dataclass(frozen=True)
class OperatorReplaced(Change):
    """An operator of a different type in the same place."""

    subject = "operator replaced"
    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class AttributeChanged(Change):
    """An attribute of an operator, a value, a graph or the payload; ``absent`` where one side has none."""

    owner: str
    name: str
    before: str
    after: str

    @property
    def subject(self) -> str:
        return self.owner

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {self.name} {_cut(self.before)} -> {_cut(self.after)}"


@dataclass(frozen=True)
class ConstantChanged(Change):
    """A constant whose type or contents differ.

    Attributes
    ----------
    difference
        Element by element, if the values of both constants are known.
    facts
        Otherwise, the facts that the goldens record of them and that differ: name, before and after.
    """

    owner: str
    difference: TensorDifference | None
    facts: tuple[tuple[str, str, str], ...] = ()

    @property
    def moved(self) -> float | None:
        """By which part of the largest value shown values moved at most; None where none is known to have."""
        if self.difference is None or self.difference.largest is None:
            return None
        values = [abs(read_number(value)) for _, *pair in self.difference.first for value in pair]
        largest = max((value for value in values if math.isfinite(value)), default=0.0)
        return self.difference.largest / largest if largest else math.inf

    def lines(self) -> Iterator[str]:
        if self.difference is not None:
            first, *rest = self.difference.lines()
            yield f"constant {self.owner}: {first}"
            yield from (f"  {line}" for line in rest)
        else:
            yield f"constant {self.owner} differs"
            yield from (f"  {name} {_cut(before)} -> {_cut(after)}" for name, before, after in self.facts)


@dataclass(frozen=True)
class EdgeRewired(Change):
    """An operator with an input from a different operator; values are named as after the change."""

    operator: str
    role: str
    before: str
    after: str

    @property
    def subject(self) -> str:
        return self.operator

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {self.role} comes from {self.after} instead of {self.before}"


@dataclass(frozen=True)
class BoundaryChanged(Change):
    """Inputs or outputs of a graph that differ, or whose order does."""

    which: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    order_only: bool

    @property
    def is_of_order(self) -> bool:
        return self.order_only

    @property
    def subject(self) -> str:
        return f"graph {self.which} {'in a different order' if self.order_only else 'changed'}"

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {_cut(', '.join(self.before))} -> {_cut(', '.join(self.after))}"


@dataclass(frozen=True)
class PartChanged(Change):
    """A graph, a delegate, a value, data or stray bytes that only one side has."""

    what: str
    before: str
    after: str

    @property
    def subject(self) -> str:
        return self.what

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {_cut(self.before)} -> {_cut(self.after)}"


@dataclass(frozen=True)
class DigestChanged(Change):
    """Programs that differ in nothing but what goldens have as a digest."""

    subject = IN_DIGEST
    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{self.subject}: {self.before} -> {self.after}"


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_LIMIT else f"{text[: VALUE_LIMIT - 4]} ..."
