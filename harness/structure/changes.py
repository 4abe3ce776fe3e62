"""What can differ between two decoded payloads, and how to say it in a line or two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harness.decode.difference import TensorDifference

#: Longer attribute values are cut in the middle of a line.
VALUE_LIMIT = 80


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

    def lines(self) -> Iterator[str]:
        """Yield what to tell a person: the difference, then details."""
        raise NotImplementedError


@dataclass(frozen=True)
class Renamed(Change):
    """Values that are the same and called differently; `examples` holds the first few, before and after."""

    content: ClassVar[bool] = False
    count: int
    examples: tuple[tuple[str, str], ...]

    def lines(self) -> Iterator[str]:
        shown = ", ".join(f"{_cut(before)} -> {_cut(after)}" for before, after in self.examples)
        yield f"{self.count} renamed: {shown}{', ...' if self.count > len(self.examples) else ''}"


@dataclass(frozen=True)
class Reordered(Change):
    """Things that are the same and stand in another order.

    Attributes
    ----------
    what
        ``operators`` or ``values``.
    moved
        The fewest that one would have to move, by their names after the change.
    total
        How many there are.
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
    """Sizes and offsets that follow from other differences; `examples` holds name, before and after."""

    content: ClassVar[bool] = False
    count: int
    examples: tuple[tuple[str, str, str], ...]

    def lines(self) -> Iterator[str]:
        shown = ", ".join(f"{name} {before} -> {after}" for name, before, after in self.examples)
        yield f"layout: {self.count} differ: {shown}{', ...' if self.count > len(self.examples) else ''}"


@dataclass(frozen=True)
class OperatorAdded(Change):
    """An operator that was not there before."""

    operator: str
    inputs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"operator added: {self.operator} on {', '.join(self.inputs) or 'nothing'}"


@dataclass(frozen=True)
class OperatorRemoved(Change):
    """An operator that is not there any more."""

    operator: str
    inputs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"operator removed: {self.operator} on {', '.join(self.inputs) or 'nothing'}"


@dataclass(frozen=True)
class OperatorReplaced(Change):
    """An operator with another type in the same place."""

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
        Element by element, where both constants are at hand.
    facts
        Otherwise what the goldens say of them: name, before and after.
    """

    owner: str
    difference: TensorDifference | None
    facts: tuple[tuple[str, str, str], ...] = ()

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
    """An operator that gets an input from elsewhere; values by their names after the change."""

    operator: str
    role: str
    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{self.operator}: {self.role} comes from {self.after} instead of {self.before}"


@dataclass(frozen=True)
class BoundaryChanged(Change):
    """Inputs or outputs of a graph: another order, or others.

    Attributes
    ----------
    which
        ``inputs`` or ``outputs``.
    """

    which: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    order_only: bool

    def lines(self) -> Iterator[str]:
        how = "in another order" if self.order_only else "changed"
        yield f"graph {self.which} {how}: {_cut(', '.join(self.before))} -> {_cut(', '.join(self.after))}"


@dataclass(frozen=True)
class PartChanged(Change):
    """A graph, a delegate, a blob or stray bytes that only one side has."""

    what: str
    before: str
    after: str

    def lines(self) -> Iterator[str]:
        yield f"{self.what}: {_cut(self.before)} -> {_cut(self.after)}"


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_LIMIT else f"{text[: VALUE_LIMIT - 4]} ..."
