"""Draws the arrays: every pair of values that fit together is in a row, and no row has a value that no pair needs.

Greedy, as AETG is (Cohen et al., IEEE TSE 1997): a row is completed from a pair that no row has yet, each factor with
the value that adds most pairs, else with the first, which is what all releases do unasked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from lab.options.factors import Row
from lab.options.rows import Array

#: Factors and their values.
Values = Mapping[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]
#: Rows that are tried for each row that is taken: the best of them is.
TRIED = 6


def drawn(array: Array) -> list[Row]:
    """Return rows that have every pair of values that some row can have."""
    open_pairs = dict.fromkeys(pair for pair in wanted(array) if completed(array, dict(pair), {}) is not None)
    found: list[Row] = []
    while open_pairs:
        spread = [*open_pairs][:: max(1, len(open_pairs) // TRIED)]
        candidates = [completed(array, dict(pair), open_pairs) for pair in spread]
        best = max(
            filter(None, candidates), key=lambda row: sum(pair in open_pairs for pair in pairs(array, row))
        )
        for pair in pairs(array, best):
            open_pairs.pop(pair, None)
        found.append(array.row(**best))
    return found


def pairs(array: Array, row: Values) -> Iterator[Pair]:
    """Yield the pairs of values of a row, or of a part of one."""
    values = [(name, row[name]) for name in array.factors if name in row]
    yield from itertools.combinations(values, 2)


def wanted(array: Array) -> Iterator[Pair]:
    """Yield the pairs of values that no rule about these two factors alone excludes."""
    for one, other in itertools.combinations(array.factors, 2):
        for values in itertools.product(array.factors[one], array.factors[other]):
            row = dict(zip((one, other), map(str, values), strict=True))
            if fits(array, row):
                yield (one, row[one]), (other, row[other])


def fits(array: Array, row: Values) -> bool:
    """Return whether a row, or a part of one, follows the rules about the factors that it has."""
    return all(holds(row) for fields, holds in array.rules if all(field in row for field in fields))


def completed(array: Array, part: Values, open_pairs: Mapping[Pair, None]) -> Values | None:
    """Return a row that has the values of `part`, with many of some pairs; None where there is none."""
    if not fits(array, part):
        return None
    # Those with the fewest values left decide first: what cannot be completed is seen early.
    left = {name: _left(array, part, name) for name in array.factors if name not in part}
    if not left:
        return part
    name = min(left, key=lambda each: len(left[each]))
    for value in sorted(left[name], key=lambda value: -_gain(part, (name, value), open_pairs)):
        if (row := completed(array, {**part, name: value}, open_pairs)) is not None:
            return row
    return None


def _left(array: Array, part: Values, name: str) -> Sequence[str]:
    """Return the values of a factor that go with a part of a row, which follows the rules by itself."""
    of_it = [
        holds
        for fields, holds in array.rules
        if name in fields and all(field in part for field in fields if field != name)
    ]
    rows = ((value, {**part, name: value}) for value in map(str, array.factors[name]))
    return [value for value, row in rows if all(holds(row) for holds in of_it)]


def _gain(part: Values, value: tuple[str, str], open_pairs: Mapping[Pair, None]) -> int:
    return sum((each, value) in open_pairs or (value, each) in open_pairs for each in part.items())
