"""Quantities of a program that have a direction, and which break their budget."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from executorch_goldens.goldens import accuracy
from executorch_goldens.goldens.findings import Exceeded
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.record import Record

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


class BudgetLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of a budget: some of `QUANTITIES`, and `SQNR`."""

    outside: _Most = UNSET
    memory: _Most = UNSET
    constants: _Most = UNSET
    duplicated: _Most = UNSET
    program: _Most = UNSET
    operators: _Most = UNSET
    delegates: _Most = UNSET
    sqnr: Annotated[float, Meta(ge=0, le=sys.float_info.max)] | UnsetType = UNSET


def measured(found: Inventory) -> dict[str, int]:
    """Return the quantities that should be small, by key; none where there is no program."""
    if found.failure is not None:
        return {}
    return {
        "outside": found.outside.total(),
        "memory": sum(found.memory),
        "constants": found.constant_bytes,
        "duplicated": found.duplicated,
        "program": found.size,
        "operators": found.operators.total() + found.outside.total(),
        "delegates": found.delegates.total(),
    }


def sqnr(found: Inventory | Record) -> float | None:
    """Return the least ratio of signal to quantization noise of a program's outputs, in dB; None if it has none."""
    ratios = map(accuracy.sqnr, found.accuracies.values())
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def over(record: Record, budgets: Iterable[tuple[str, Mapping[str, float]]]) -> Iterator[Exceeded]:
    """Yield each budget that the program of a cell exceeds; a failed lowering has no quantities."""
    asked = list(budgets)
    if not asked:
        return
    found, ratio = measured(record.inventory), sqnr(record.inventory)
    for cells, limits in asked:
        for key, limit in limits.items():
            if key == SQNR and ratio is not None and ratio < limit:
                yield Exceeded(key, ratio, limit, cells)
            elif found.get(key, 0) > limit:
                yield Exceeded(key, found[key], limit, cells)
