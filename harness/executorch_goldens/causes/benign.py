"""Rates how benign a cause is: how far its cells are from eager and from their goldens, before and after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from executorch_goldens.decode.numbers import read_number
from executorch_goldens.diff.changes import ConstantChanged
from executorch_goldens.diff.payloads import compare
from executorch_goldens.goldens import accuracy
from executorch_goldens.goldens.record import PROGRAM, Record

if TYPE_CHECKING:
    from executorch_goldens.causes.groups import Member

#: From here on a number is shorter with an exponent.
LONGEST = 1e6


def against(part: float) -> str:
    """Return an error in words, from the part of its tolerance that it takes.

    >>> against(0.0333), against(2.5), against(math.inf)
    ('0.0333 of the tolerance', '2.5 times the tolerance', 'where none is allowed')
    """
    if math.isinf(part):
        return "where none is allowed"
    return f"{times(part)} {'the' if part > 1 else 'of the'} tolerance"


def times(part: float) -> str:
    """Return how often an error takes its tolerance.

    >>> times(0.0333), times(2.5), times(12345.6), times(1e9), times(math.inf)
    ('0.0333', '2.5 times', '12,346 times', '1e+09 times', 'none is allowed')
    """
    if math.isinf(part):
        return "none is allowed"
    if part <= 1:
        return f"{part:.3g}"
    return f"{part:,.0f} times" if 1000 <= part < LONGEST else f"{part:.3g} times"


def moved(before: Record | None, after: Record | None) -> float | None:
    """Return by which part of their largest value constants moved at most; None where none is known to have."""
    if before is None or after is None:
        return None
    parts = []
    for name in (*before.delegates, PROGRAM):
        one, other = before.payload(name), after.payload(name)
        for change in compare(one, other).changes if one is not None and other is not None else ():
            found = change.difference if isinstance(change, ConstantChanged) else None
            if found is None or found.largest is None:
                continue
            values = [abs(read_number(value)) for _, *pair in found.first for value in pair]
            largest = max((value for value in values if math.isfinite(value)), default=0.0)
            parts.append(found.largest / largest if largest else math.inf)
    return max(parts, default=None)


def lines(members: Sequence[Member]) -> Iterator[str]:
    """Yield lines to weigh a cause by: errors that grew, values that moved, SQNR that fell."""
    measured = [each for each in members if each.used is not None]
    known = [each for each in measured if each.used_before is not None]
    unknown = [each for each in measured if each.used_before is None]
    if grown := sorted((each for each in known if each.growth), key=lambda each: -each.growth):
        where = f"most in {grown[0].proposal.cell}: {grown[0].error_words}"
        yield f"error against eager: larger in {len(grown)} of {len(known)}, {where}"
    elif known:
        yield f"error against eager: larger in none of {len(known)}"
    if unknown:
        largest = max(unknown, key=lambda each: each.used or 0.0)
        most = f"{largest.error_words.removeprefix('error ')} in {largest.proposal.cell}"
        which = "its error" if len(unknown) == 1 else f"the largest of {len(unknown)} whose error"
        yield f"error against eager: {most}; {which} before is unknown"
    if parts := [part for each in members if (part := moved(each.before, each.after)) is not None]:
        yield f"constants changed by at most {max(parts):.2g} of their largest listed value"
    found = ((each.proposal.cell, each.ratios) for each in members)
    pairs = {cell: (had, now) for cell, (had, now) in found if had is not None and now is not None}
    fallen = {cell: had - now for cell, (had, now) in pairs.items() if accuracy.fell(had, now)}
    lower = f"SQNR: lower by more than {accuracy.STEP:g} dB in"
    if fallen:
        cell = max(fallen, key=lambda each: fallen[each])
        had, now = pairs[cell]
        yield f"{lower} {len(fallen)} of {len(pairs)}, most in {cell}: {had:.1f} -> {now:.1f} dB"
    elif pairs:
        yield f"{lower} none of {len(pairs)}"
