"""Quantities of a program that have a direction: which of them became worse or better, and which break their budget."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from executorch_goldens.goldens import accuracy
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.reading import Reading, reading

#: Quantities of a program that should be small: the key in a budget, with its name; in the order of messages.
QUANTITIES: Mapping[str, str] = {
    "outside": "operators outside delegates",
    "memory": "bytes of planned memory",
    "constants": "bytes of constants",
    "duplicated": "bytes of constants that are stored more than once",
    "program": "bytes of the program",
    "operators": "operators, in delegates and outside",
    "delegates": "delegates",
}
#: The key of what is better if it is more: the ratio of signal to quantization noise of a program's worst output.
SQNR = "sqnr"

_Most = Annotated[int, Meta(ge=0)] | UnsetType


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of a budget: some of `QUANTITIES`, and `SQNR`."""

    outside: _Most = UNSET
    memory: _Most = UNSET
    constants: _Most = UNSET
    duplicated: _Most = UNSET
    program: _Most = UNSET
    operators: _Most = UNSET
    delegates: _Most = UNSET
    sqnr: Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)] | UnsetType = UNSET


def measured(found: Reading) -> dict[str, int]:
    """Return the quantities that should be small, by key; none where there is no program.

    A quantity that is not known is left out.
    """
    if found.failure is not None:
        return {}
    quantities = {
        "outside": found.outside.total(),
        "memory": sum(found.memory),
        "constants": found.constant_bytes,
        "duplicated": found.duplicated,
        "program": found.size,
        "operators": found.operators.total() + found.outside.total(),
        "delegates": found.delegates.total(),
    }
    return {key: number for key, number in quantities.items() if number is not None}


def sqnr(found: Reading) -> float | None:
    """Return the least ratio of signal to quantization noise of a program's outputs, in dB; None if it has none."""
    return min(accuracy.sqnrs(found.accuracies.values()), default=None)


def may_be_better(before: Reading, after: Reading) -> bool:
    """Return whether less of a quantity is better: both have the same operators outside of delegates.

    Otherwise it may be less because a copy is gone that a correct program needs.
    """
    if before.outside != after.outside:
        return False
    return None in (before.instructions, after.instructions) or before.instructions == after.instructions


def direction(old: float, new: float, before: Reading, after: Reading) -> str:
    """Return the direction of a quantity that should be small and changed, of two programs."""
    if new > old:
        return WORSE
    return BETTER if may_be_better(before, after) else OTHER


def directions(before: Reading, after: Reading) -> Iterator[str]:
    """Yield a line for each quantity that became worse, then for others; none where one has no program."""
    lines = [*_sizes(before, after), *_accuracies(before, after)]
    for word in (WORSE, BETTER, OTHER):
        yield from (f"{word}: {line}" for direction, line in lines if direction == word)


#: The directions in which a quantity changes; `OTHER` for less of it where that may be wrong, see `may_be_better`.
WORSE, BETTER, OTHER = "worse", "better", "different"


def _sizes(before: Reading, after: Reading) -> Iterator[tuple[str, str]]:
    old, new = measured(before), measured(after)
    for key in old:
        if key in new and old[key] != new[key]:
            line = _line(key, old[key], new[key], before, after)
            yield direction(old[key], new[key], before, after), line


def _accuracies(before: Reading, after: Reading) -> Iterator[tuple[str, str]]:
    for field, old in before.accuracies.items():
        new = after.accuracies.get(field, old)
        if not accuracy.same(old, new):
            yield WORSE if accuracy.is_worse(old, new) else BETTER, f"{field}: {old} -> {new}"


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


def over(texts: Texts, budgets: Iterable[tuple[str, Mapping[str, float]]]) -> Iterator[str]:
    """Yield a line for each budget that the program of a cell exceeds; a failed lowering has no quantities.

    Parameters
    ----------
    budgets
        `executorch_goldens.goldens.decisions.Decisions.budgets` of the cell.
    """
    asked = list(budgets)
    if not asked:
        return
    read = reading(texts)
    found, ratio = measured(read), sqnr(read)
    for pattern, limits in asked:
        for key, limit in limits.items():
            if key == SQNR and ratio is not None and ratio < limit:
                yield f"{ratio:.1f} dB of SQNR, and {limit:g} are the least in the budget ({pattern}: {key})"
            elif found.get(key, 0) > limit:
                yield f"{found[key]:,} {QUANTITIES[key]}, and {limit:,} are in the budget ({pattern}: {key})"
