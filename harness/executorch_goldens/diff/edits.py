"""The differences of a cell by which people group cells, as data, and the words for them.

Cells that show the same difference have equal edits. What a cell has of its own, as values and numbers, is in fields
that are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

from executorch_goldens.files.wording import some
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
#: The kinds of what delegates hold.
OPERATORS, ATTRIBUTES, CONSTANTS = "operators", "attributes", "constants"
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
    CONSTANTS: EditKind(8, "constants with different values, ", "Constants with different values"),
    OPERATORS: EditKind(6, "", "Operators gained or lost"),
    ATTRIBUTES: EditKind(7, "", "Attributes and shapes"),
    "wiring": EditKind(9, "", "The same operators and constants, connected differently", separate=True),
    "cells": EditKind(11, "", "Cells in only one release", separate=True),
    TEXT: EditKind(10),
}
#: At most this many values of an attribute or of constants are shown.
SHOWN_VALUES = 4


@dataclass(frozen=True)
class Edit:
    """A difference of a cell.

    Attributes
    ----------
    kind
        Its kind, of `KINDS`.
    by_values
        Whether from one release to another cells that show it with other values have an entry of their own.
    """

    by_values: ClassVar[bool] = False
    kind: str

    @property
    def key(self) -> tuple[Any, ...]:
        """The difference in plain values, whichever cell shows it."""
        return type(self).__name__, *(getattr(self, each.name) for each in fields(self) if each.compare)

    @property
    def own(self) -> tuple[Any, ...]:
        """What this cell has of its own."""
        return tuple(getattr(self, each.name) for each in fields(self) if not each.compare)

    def of_any_operator(self) -> Edit:
        """Return it without the types of operator and of element that it is of."""
        return self

    @property
    def what(self) -> str:
        """What differs, where the kind is named beside it."""
        raise NotImplementedError

    @property
    def detail(self) -> str:
        """What this cell has of its own, in words; empty for nothing."""
        return ""

    def __str__(self) -> str:
        return f"{KINDS[self.kind].words}{self.what}"

    @property
    def line(self) -> str:
        """All of it."""
        return f"{self}: {self.detail}" if self.detail else str(self)

    @property
    def title(self) -> str:
        """What the title of a cause has of it."""
        title = str(self.of_any_operator())
        return f"{title} {self.detail}" if self.by_values else title

    @property
    def entry(self) -> tuple[str, str]:
        """What differs from one release to another, and what this cell shows of that."""
        return (self.line, "") if self.by_values else (self.what, self.detail)


@dataclass(frozen=True)
class NewCell(Edit):
    """A cell in some state with nothing to compare it with: messages call that `lacks`."""

    state: str
    lacks: str

    @property
    def what(self) -> str:
        return "; ".join(filter(None, (self.state, f"no {self.lacks}")))


@dataclass(frozen=True)
class NamesAlone(Edit):
    """Names differ and nothing else; the first of them, before and after."""

    before: str = field(compare=False)
    after: str = field(compare=False)

    @property
    def what(self) -> str:
        return "names alone"

    @property
    def detail(self) -> str:
        return f"{self.before} -> {self.after}"


@dataclass(frozen=True)
class Weights(Edit):
    """Recorded parameters and buffers are not those of what messages call `old`."""

    names: tuple[str, ...]
    old: str

    @property
    def what(self) -> str:
        return f"weights that are not the {self.old}'s: {some(self.names)}"


@dataclass(frozen=True)
class Failing(Edit):
    """A failure that is new, is there in place of the one that `was`, or is gone."""

    failure: str
    was: str = field(default="", compare=False)

    @property
    def what(self) -> str:
        return self.failure

    @property
    def detail(self) -> str:
        return f"was {self.was}" if self.was else ""


@dataclass(frozen=True)
class Delegates(Edit):
    """Delegates in another number, `sign` says in which direction, or of other backends."""

    by_values = True
    sign: int
    before: int = field(compare=False)
    after: int = field(compare=False)

    @property
    def what(self) -> str:
        if not self.after:
            return "no delegate is left"
        return ("delegates of other backends", "more delegates", "fewer delegates")[self.sign]

    @property
    def detail(self) -> str:
        return f"{self.before} -> {self.after} delegates"

    @property
    def title(self) -> str:
        return str(self)

    @property
    def entry(self) -> tuple[str, str]:
        return self.detail, ""


@dataclass(frozen=True)
class Operators(Edit):
    """Operators of a type in delegates, or outside of them: how many more there are."""

    operator: str
    gained: bool
    more: int = field(compare=False)

    @property
    def what(self) -> str:
        way = "gained" if self.gained else "lost"
        # The words of the other kinds say which.
        return f"{self.operator} {way}" if self.kind == OPERATORS else self.operator

    @property
    def detail(self) -> str:
        return f"{self.more:+d}"


@dataclass(frozen=True)
class Attribute(Edit):
    """An attribute of operators of a type: its first values, before and after, and whether there are more."""

    by_values = True
    operator: str
    name: str
    values: tuple[tuple[str, str], ...] = field(compare=False)
    more: bool = field(compare=False)

    def of_any_operator(self) -> Edit:
        return replace(self, operator="", name=self.name.rpartition(".")[2])

    @property
    def what(self) -> str:
        return f"{self.operator}.{self.name}" if self.operator else self.name

    @property
    def detail(self) -> str:
        return listed((f"{before} -> {after}" for before, after in self.values), self.more)


@dataclass(frozen=True)
class FormatFields(Edit):
    """Fields that one of two versions of a format lacks."""

    by_values = True
    names: tuple[str, ...] = field(compare=False)

    @property
    def what(self) -> str:
        return "fields that only one of the formats has"

    @property
    def detail(self) -> str:
        return ", ".join(self.names)


@dataclass(frozen=True)
class Constants(Edit):
    """Constants for one use.

    Attributes
    ----------
    changed
        The first of what differs: the type of constants, empty for that of those before, and a value, a type or a
        number of constants before and after, empty where no golden lists it.
    """

    operator: str
    operand: str
    dtype: str
    changed: tuple[tuple[str, str | int, str | int], ...] = field(compare=False)
    more: bool = field(default=False, compare=False)

    def of_any_operator(self) -> Edit:
        # Of a type and a number, that of the operator says what it is.
        return replace(self, dtype="") if self.kind == CONSTANTS else self

    @property
    def what(self) -> str:
        return " ".join(filter(None, (self.operator, self.operand, self.dtype)))

    @property
    def detail(self) -> str:
        return listed(map(_constant, self.changed), self.more)


def _constant(changed: tuple[str, str | int, str | int]) -> str:
    type_, before, after = changed
    if isinstance(after, int):
        return f"{before} -> {after} constants"
    return " ".join(filter(None, (type_, f"{before} -> {after}" if before != after else "")))


@dataclass(frozen=True)
class Rewired(Edit):
    """The same operators and constants, connected differently: one of them; or only a delegate's order differs."""

    order_only: bool
    operator: str = field(default="", compare=False)

    @property
    def what(self) -> str:
        order = "a delegate's inputs or outputs in a different order"
        return order if self.order_only else "operands connected differently"

    @property
    def detail(self) -> str:
        return self.operator


@dataclass(frozen=True)
class Aside(Edit):
    """What no inventory has, of the manifest, the graph, a delegate or the program; of constants no more is known."""

    part: str
    how: str = ""

    @property
    def what(self) -> str:
        return f"{self.part}: {self.how}" if self.how else f"of the {self.part}"


def listed(words: Iterable[str], more: bool = False) -> str:
    """Return words in a row.

    >>> listed(["6 -> 2", "4 -> 1"], more=True)
    '6 -> 2, 4 -> 1, …'
    """
    return ", ".join([*words, *(["…"] if more else [])])
