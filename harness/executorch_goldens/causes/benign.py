"""Says how far a cell is from eager, and its constants from those of its golden."""

from __future__ import annotations

import math

from executorch_goldens.decode.numbers import read_number
from executorch_goldens.diff.changes import ConstantChanged
from executorch_goldens.diff.payloads import compare
from executorch_goldens.goldens.record import PROGRAM, Record

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
    before, after = before.beside(after), after.beside(before)
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
