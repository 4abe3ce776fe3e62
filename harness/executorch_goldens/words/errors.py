"""How far a cell is from eager, in words."""

from __future__ import annotations

import math

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
    return multiple(part) if part <= 1 or math.isinf(part) else f"{multiple(part)} times"


def multiple(part: float) -> str:
    """Return it without the noun."""
    if math.isinf(part):
        return "none is allowed"
    return f"{part:,.0f}" if 1000 <= part < LONGEST else f"{part:.3g}"
