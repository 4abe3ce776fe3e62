"""Quantities of two programs: which of them became worse or better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from executorch_goldens.goldens import accuracy
from executorch_goldens.goldens.accuracy import Measured
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.quantities import QUANTITIES, measured
from executorch_goldens.goldens.record import Record

#: The directions in which a quantity changes; `OTHER` for less of it where that may be wrong, see `may_be_better`.
WORSE, BETTER, OTHER = "worse", "better", "different"


@dataclass(frozen=True)
class Quantity:
    """A quantity of two artifacts; None where one has no program, or does not say.

    Attributes
    ----------
    what
        Its name, as those of `QUANTITIES`.
    direction
        `WORSE`, `BETTER` or `OTHER`; empty where it stays or there is nothing to compare.
    """

    what: str
    before: float | None
    after: float | None
    direction: str = ""

    @property
    def more(self) -> int:
        """How much more there is of it, where its direction is known."""
        return int((self.after or 0) - (self.before or 0))


@dataclass(frozen=True)
class Quantities:
    """How much more or less an artifact has than another.

    Attributes
    ----------
    by_key
        `quantities` of both.
    operators
        How many more operators there are in all delegates, negative for less, by type; types of which there are as
        many are left out, and all where one artifact has no program.
    moved
        By which part of their largest value constants moved at most; None where none is known to have.
    """

    by_key: Mapping[str, Quantity] = field(default_factory=dict)
    operators: Mapping[str, int] = field(default_factory=dict)
    moved: float | None = None

    @classmethod
    def between(cls, before: Inventory, after: Inventory, moved: float | None = None) -> Quantities:
        more: dict[str, int] = {}
        if not (before.failure or after.failure):
            names = sorted({*before.operators, *after.operators})
            more = {name: after.operators[name] - before.operators[name] for name in names}
        return cls(quantities(before, after), {name: each for name, each in more.items() if each}, moved)

    @property
    def program(self) -> int:
        """Bytes of the ``.pte`` that it has more."""
        return self._more("program")

    @property
    def constants(self) -> int:
        """Bytes of constants that it has more."""
        return self._more("constants")

    def _more(self, key: str) -> int:
        return self.by_key[key].more if key in self.by_key and self.by_key[key].direction else 0


def quantities(before: Inventory, after: Inventory) -> dict[str, Quantity]:
    """Return the quantities that one of two artifacts has, by key."""
    old, new = measured(before), measured(after)
    less = BETTER if may_be_better(before, after) else OTHER
    found = {}
    for key in QUANTITIES:
        had, has = old.get(key), new.get(key)
        differs = had is not None and has is not None and had != has
        direction = "" if not differs else WORSE if (has or 0) > (had or 0) else less
        if old or new:
            found[key] = Quantity(QUANTITIES[key], had, has, direction)
    return found


def may_be_better(before: Inventory, after: Inventory) -> bool:
    """Return whether less of a quantity is better: both have the same operators outside of delegates.

    Otherwise it may be less because a copy is gone that a correct program needs.
    """
    if before.outside != after.outside:
        return False
    return None in (before.instructions, after.instructions) or before.instructions == after.instructions


def directions(before: Inventory, after: Inventory, found: Quantities) -> Iterator[str]:
    """Yield a line for each quantity that became worse, then for others; none where one has no program."""
    lines = [
        (each.direction, _line(key, each, before, after))
        for key, each in found.by_key.items()
        if each.direction
    ]
    for name, old, new in accuracies(before, after):
        line = f"{name}: {accuracy.text(old)} -> {accuracy.text(new)}"
        lines.append((WORSE if accuracy.is_worse(old, new) else BETTER, line))
    for word in (WORSE, BETTER, OTHER):
        yield from (f"{word}: {line}" for direction, line in lines if direction == word)


def accuracies(
    before: Inventory | Record, after: Inventory | Record
) -> Iterator[tuple[str, Measured, Measured]]:
    """Yield the accuracies that differ by more than a machine makes them: the field and both values."""
    for name, old in before.accuracies.items():
        new = after.accuracies.get(name, old)
        if not accuracy.same(old, new):
            yield name, old, new


def _line(key: str, found: Quantity, before: Inventory, after: Inventory) -> str:
    old, new = found.before or 0, found.after or 0
    times = f" ({new / old:.2f} times)" if old and new else ""
    line = f"{old:,} -> {new:,} {found.what}{times}"
    if key == "outside":
        names = sorted(before.outside.keys() | after.outside.keys())
        more = {name: after.outside[name] - before.outside[name] for name in names}
        line += ": " + ", ".join(f"{name} {count:+d}" for name, count in more.items() if count)
    if key == "memory" and max(len(before.memory), len(after.memory)) > 1:
        arenas = (" + ".join(f"{size:,}" for size in each.memory) or "none" for each in (before, after))
        line += f": by arena {' -> '.join(arenas)}"
    return line
