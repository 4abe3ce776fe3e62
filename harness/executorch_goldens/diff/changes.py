"""The kinds of difference between two artifacts and their decoded payloads, and the lines that report them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from executorch_goldens.decode.difference import TensorDifference
from executorch_goldens.decode.numbers import read_number
from executorch_goldens.goldens.record import MODEL


class EditKind(NamedTuple):
    """A kind of difference by which people group cells.

    Attributes
    ----------
    cause
        Its place among those that a cause is named by: kinds of one place show together, those first that bring the
        others about.
    words
        Begins the words for a difference of it; empty for one that names itself.
    section
        Title of its section in a report from one release to another; empty where it has none.
    separate
        Whether each has its own cause there, even if the same cells show it.
    """

    cause: int
    words: str = ""
    section: str = ""
    separate: bool = False


#: The kind of the edit of a cell that has no golden, and of those that are in no inventory: names, order, and facts of
#: the program around its delegates.
NEW, TEXT = "new", "text"
#: The kinds by name, those that matter most to a reader first.
KINDS: Mapping[str, EditKind] = {
    NEW: EditKind(0),
    MODEL: EditKind(1),
    "fails": EditKind(2, "fails: ", "Newly failing or wrong", separate=True),
    "differently": EditKind(3, "fails differently: ", "Fail differently", separate=True),
    "lowers": EditKind(4, "no longer fails: ", "No longer failing or wrong", separate=True),
    "gone": EditKind(5, "", "No longer delegated", separate=True),
    "delegates": EditKind(5, "", "Delegates merged or split", separate=True),
    "outside": EditKind(5, "left to portable kernels: ", "Left to portable kernels"),
    "taken": EditKind(5, "no longer left to portable kernels: ", "No longer left to portable kernels"),
    "constants": EditKind(8, "constants with different values, ", "Constants with different values"),
    "operators": EditKind(6, "", "Operators gained or lost"),
    "attributes": EditKind(7, "", "Attributes and shapes"),
    "wiring": EditKind(9, "", "The same operators and constants, connected differently", separate=True),
    "cells": EditKind(11, "", "Cells in only one release", separate=True),
    TEXT: EditKind(10),
}
#: Longer values are cut at this many characters.
VALUE_LIMIT = 80
#: What a golden has of a program as a digest only (`executorch_goldens.goldens.program`), in words.
IN_DIGEST = "what goldens have as a digest only"


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

    operator: str
    inputs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"operator added: {self.operator} on {', '.join(self.inputs) or 'nothing'}"


@dataclass(frozen=True)
class OperatorRemoved(Change):
    """An operator that only the graph before has."""

    operator: str
    inputs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"operator removed: {self.operator} on {', '.join(self.inputs) or 'nothing'}"


@dataclass(frozen=True)
class OperatorReplaced(Change):
    """An operator of a different type in the same place."""

    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"operator replaced: {self.before} -> {self.after}"


@dataclass(frozen=True)
class AttributeChanged(Change):
    """An attribute of an operator, a value, a graph or the payload; ``absent`` where one side has none."""

    owner: str
    name: str
    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{self.owner}: {self.name} {_cut(self.before)} -> {_cut(self.after)}"


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

    def lines(self) -> Iterator[str]:
        yield f"{self.operator}: {self.role} comes from {self.after} instead of {self.before}"


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

    def lines(self) -> Iterator[str]:
        how = "in a different order" if self.order_only else "changed"
        yield f"graph {self.which} {how}: {_cut(', '.join(self.before))} -> {_cut(', '.join(self.after))}"


@dataclass(frozen=True)
class PartChanged(Change):
    """A graph, a delegate, a value, data or stray bytes that only one side has."""

    what: str
    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{self.what}: {_cut(self.before)} -> {_cut(self.after)}"


@dataclass(frozen=True)
class DigestChanged(Change):
    """Programs that differ in nothing but what goldens have as a digest."""

    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{IN_DIGEST}: {self.before} -> {self.after}"


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_LIMIT else f"{text[: VALUE_LIMIT - 4]} ..."
