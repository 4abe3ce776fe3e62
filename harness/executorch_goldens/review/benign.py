"""Rates how benign a proposal is: its distance from eager and from its golden, before and after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from executorch_goldens.decode.numbers import read_number
from executorch_goldens.goldens import accuracy, golden
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.quantities import sqnr
from executorch_goldens.goldens.reading import reading
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.structure import ConstantChanged, compare

#: From here on a number is shorter with an exponent.
LONGEST = 1e6

#: A cell, its golden and what it proposes.
Compared = tuple[Proposal, Texts | None, Texts | None]


def used(proposal: Proposal) -> float | None:
    """Return the part of its tolerance that the error of a cell takes; None where nothing was measured."""
    return proposal.accuracy.used if proposal.accuracy is not None else None


def used_before(before: Texts | None) -> float | None:
    """Return which part of its tolerance the error of a cell's golden took; None where that does not say."""
    if before is None:
        return None
    said = golden.fields(before)
    # A program whose outputs have to be eager's has no error.
    return (
        0.0
        if accuracy.EQUAL in said.get("numerics", "")
        else accuracy.read_error(said.get(accuracy.ERROR, ""))
    )


def growth(proposal: Proposal, before: Texts | None) -> float:
    """Return by which part of its tolerance the error of a cell grew; 0 where it did not, or is not known."""
    now, had = used(proposal), used_before(before)
    if now is None or had is None:
        return 0.0
    # A golden has it in so many digits.
    return max((accuracy.read_error(accuracy.error(now)) or 0.0) - had, 0.0)


def shown(proposal: Proposal, before: Texts | None) -> str:
    """Return the error of a cell against eager, before and after, as parts of its tolerance; empty if not measured."""
    now, had = used(proposal), used_before(before)
    if now is None:
        return ""
    old = f"{times(had).removesuffix(' times')} -> " if had is not None else ""
    return f"error {old}{against(now)}"


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


def moved(before: Texts | None, after: Texts | None) -> float | None:
    """Return by which part of their largest value constants moved at most; None where none is known to have."""
    if before is None or after is None:
        return None
    parts = []
    for name in before.keys() & after.keys():
        if not name.startswith(("delegate_", "pte")) or before[name] == after[name]:
            continue
        for change in compare(before[name], after[name]).changes:
            found = change.difference if isinstance(change, ConstantChanged) else None
            if found is None or found.largest is None:
                continue
            values = [abs(read_number(value)) for _, one, other in found.first for value in (one, other)]
            largest = max((value for value in values if math.isfinite(value)), default=0.0)
            parts.append(found.largest / largest if largest else math.inf)
    return max(parts, default=None)


def lines(cells: Sequence[Compared]) -> Iterator[str]:
    """Yield lines to weigh a cause by: errors that grew, values that moved, SQNR that fell."""
    measured = [each for each in cells if used(each[0]) is not None]
    known = [each for each in measured if used_before(each[1]) is not None]
    grown = sorted((each for each in known if growth(*each[:2])), key=lambda each: -growth(*each[:2]))
    if grown:
        proposal, before, _ = grown[0]
        where = f"most in {proposal.cell}: {shown(proposal, before)}"
        yield f"error against eager: larger in {len(grown)} of {len(known)}, {where}"
    elif known:
        yield f"error against eager: larger in none of {len(known)}"
    if len(measured) > len(known):
        unknown = [each for each in measured if used_before(each[1]) is None]
        proposal, before, _ = max(unknown, key=lambda each: used(each[0]) or 0.0)
        most = shown(proposal, before).removeprefix("error ")
        yield f"error against eager: {most} in {proposal.cell}; {_unrecorded(len(unknown))}"
    parts = [part for _, before, after in cells if (part := moved(before, after)) is not None]
    if parts:
        yield f"constants changed by at most {max(parts):.2g} of their largest listed value"
    yield from _sqnr(cells)


def _unrecorded(cells: int) -> str:
    """Return that earlier errors are unknown."""
    return (
        "its error before is unknown"
        if cells == 1
        else f"the largest of {cells} whose error before is unknown"
    )


def ratios(proposal: Proposal, before: Texts | None) -> tuple[float | None, float | None]:
    """Return the SQNR of a cell against the float model, of its golden and now, in dB; None where it is not known."""
    now = proposal.accuracy.sqnr if proposal.accuracy is not None else None
    return (sqnr(reading(before)) if before is not None and now is not None else None), now


def _sqnr(cells: Sequence[Compared]) -> Iterator[str]:
    """Yield in how many cells the SQNR against the float model fell by more than a machine may change it."""
    found = ((proposal.cell, ratios(proposal, before)) for proposal, before, _ in cells)
    pairs = {cell: (had, now) for cell, (had, now) in found if had is not None and now is not None}
    fallen = {cell: had - now for cell, (had, now) in pairs.items() if accuracy.fell(had, now)}
    lower = f"SQNR: lower by more than {accuracy.STEP:g} dB in"
    if fallen:
        cell = max(fallen, key=lambda each: fallen[each])
        had, now = pairs[cell]
        yield f"{lower} {len(fallen)} of {len(pairs)}, most in {cell}: {had:.1f} -> {now:.1f} dB"
    elif pairs:
        yield f"{lower} none of {len(pairs)}"
