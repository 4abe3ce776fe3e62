"""Quantities of two programs: which of them became worse or better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from executorch_goldens.goldens import accuracy
from executorch_goldens.goldens.accuracy import Measured
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.quantities import QUANTITIES, measured, sqnr

#: The directions in which a quantity changes; `OTHER` for less of it where that may be wrong, see `may_be_better`.
WORSE, BETTER, OTHER = "worse", "better", "different"
#: In words, what is better if it is more.
RATIO = "dB of SQNR of the worst output: more is better"


@dataclass(frozen=True)
class Quantity:
    """A quantity of two artifacts; None where one has no program, or does not say.

    Attributes
    ----------
    what
        Its name, of `QUANTITIES`, or `RATIO`.
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


def ratio(before: Inventory, after: Inventory) -> Quantity | None:
    """Return the least ratio of signal to quantization noise of both; None where neither has one."""
    had, has = sqnr(before), sqnr(after)
    differs = had is not None and has is not None and had != has
    direction = "" if not differs else WORSE if (has or 0.0) < (had or 0.0) else BETTER
    return None if had is None and has is None else Quantity(RATIO, had, has, direction)


def may_be_better(before: Inventory, after: Inventory) -> bool:
    """Return whether less of a quantity is better: both have the same operators outside of delegates.

    Otherwise it may be less because a copy is gone that a correct program needs.
    """
    if before.outside != after.outside:
        return False
    return None in (before.instructions, after.instructions) or before.instructions == after.instructions


def directions(before: Inventory, after: Inventory) -> Iterator[str]:
    """Yield a line for each quantity that became worse, then for others; none where one has no program."""
    found = quantities(before, after)
    lines = [
        (each.direction, _line(key, each, before, after)) for key, each in found.items() if each.direction
    ]
    for field, old, new in accuracies(before, after):
        line = f"{field}: {accuracy.text(old)} -> {accuracy.text(new)}"
        lines.append((WORSE if accuracy.is_worse(old, new) else BETTER, line))
    for word in (WORSE, BETTER, OTHER):
        yield from (f"{word}: {line}" for direction, line in lines if direction == word)


def accuracies(before: Inventory, after: Inventory) -> Iterator[tuple[str, Measured, Measured]]:
    """Yield the accuracies that differ by more than a machine makes them: the field and both values."""
    for field, old in before.accuracies.items():
        new = after.accuracies.get(field, old)
        if not accuracy.same(old, new):
            yield field, old, new


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
