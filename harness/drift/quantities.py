"""Quantities of a program of which less is better: which of them grew or shrank, and which are over their budget."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping

from harness.artifact import Cell
from harness.config import QUANTITIES
from harness.drift.reading import Reading, reading
from harness.judging.golden import Texts

#: Pattern of cells, ``TARGET/CASE``, to the most that there may be of each of `harness.config.QUANTITIES`.
Budgets = Mapping[str, Mapping[str, int]]


def measured(found: Reading) -> dict[str, int]:
    """Return the quantities of a program, by key; none where there is no program."""
    if found.failure is not None:
        return {}
    return {
        "outside": found.outside.total(),
        "memory": sum(found.memory),
        "constants": found.constant_bytes,
        "program": found.size,
        "operators": found.operators.total() + found.outside.total(),
        "delegates": found.delegates.total(),
    }


def directions(before: Reading, after: Reading) -> Iterator[str]:
    """Yield a line for each quantity that grew, then for each that shrank; none where one of them has no program."""
    old, new = measured(before), measured(after)
    for worse in (True, False):
        for key in old if new else ():
            if old[key] != new[key] and (new[key] > old[key]) is worse:
                yield f"{'worse' if worse else 'better'}: {_line(key, old[key], new[key], before, after)}"


def _line(key: str, old: int, new: int, before: Reading, after: Reading) -> str:
    ratio = f" ({new / old:.2f} times)" if old and new else ""
    line = f"{old:,} -> {new:,} {QUANTITIES[key]}{ratio}"
    if key == "outside":
        names = sorted(before.outside.keys() | after.outside.keys())
        more = {name: after.outside[name] - before.outside[name] for name in names}
        line += ": " + ", ".join(f"{name} {count:+d}" for name, count in more.items() if count)
    if key == "memory" and max(len(before.memory), len(after.memory)) > 1:
        line += f": by arena {_by_arena(before)} -> {_by_arena(after)}"
    return line


def _by_arena(found: Reading) -> str:
    return " + ".join(f"{size:,}" for size in found.memory) or "none"


def over(cell: Cell, texts: Texts, budgets: Budgets) -> Iterator[str]:
    """Yield a line for each budget that the program of a cell is over; what fails to lower has no quantities."""
    asked = {pattern: limits for pattern, limits in budgets.items() if fnmatch.fnmatch(str(cell), pattern)}
    found = measured(reading(texts)) if asked else {}
    for pattern, limits in asked.items():
        for key, most in limits.items():
            if found.get(key, 0) > most:
                yield f"{found[key]:,} {QUANTITIES[key]}, and {most:,} are in the budget ({pattern}: {key})"
