"""Compares two readings of one cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import TypeGuard

from executorch_goldens.goldens.reading import Held, Reading, Use
from executorch_goldens.structure import AttributeChanged, BoundaryChanged, Change, EdgeRewired, compare
from executorch_goldens.structure.facts import ABSENT

#: Kind (`report.KINDS`), what changed, and the detail that this cell adds.
Difference = tuple[str, str, str]
#: Positions, sizes, deviations, and the sample that showed it, as in ``output 0 (drawn)``, in the reason of a
#: failure: a different one is no different failure.
INCIDENTAL = re.compile(r"\b(?:0x[0-9a-f]+|\d[\d.]*(?:e-?\d+)?)\b|(?<=\d) \([a-z ]+\)")
#: At most this many values of an attribute are shown.
SHOWN_VALUES = 4


def differences(old: Reading, new: Reading) -> Iterator[Difference]:
    """Yield every difference between two readings, as (kind, change, detail of this cell)."""
    found = list(_contents(old, new))
    yield from found or _wiring(old, new)


def _contents(old: Reading, new: Reading) -> Iterator[Difference]:
    """Yield differences in failures, delegates, operators, attributes and constants, however these are connected."""
    if old.failure or new.failure:
        yield from _failures(old.failure or "", new.failure or "")
        return
    if old.delegates != new.delegates:
        kind = "delegates" if new.delegates else "gone"
        yield kind, f"{old.delegates.total()} -> {new.delegates.total()} delegates", ""
    for name, change in _changes(old.outside, new.outside):
        yield ("outside" if change > 0 else "taken"), name, f"{change:+d}"
    changes = dict(_changes(old.operators, new.operators))
    for name, change in changes.items():
        yield "operators", f"{name} {'gained' if change > 0 else 'lost'}", f"{change:+d}"
    # Where operators were gained or lost, that is reported, and not their attributes as well.
    yield from _attributes(old, new, changes)
    for use in sorted(old.constants.keys() | new.constants.keys()):
        held, holds = old.constants.get(use, Counter()), new.constants.get(use, Counter())
        if held.total() == holds.total():
            yield from _constants(use, sorted((held - holds).elements()), sorted((holds - held).elements()))
        elif use[0] not in changes:
            yield "attributes", " ".join(use), f"{held.total()} -> {holds.total()} constants"


def _failures(old: str, new: str) -> Iterator[Difference]:
    """Yield how failures differ; empty where a release lowers the cell."""
    if INCIDENTAL.sub("", old) == INCIDENTAL.sub("", new):
        return
    if new:
        yield ("differently", new, f"was {old}") if old else ("fails", new, "")
    else:
        yield "lowers", old, ""


def _attributes(old: Reading, new: Reading, but: Container[str]) -> Iterator[Difference]:
    """Yield the attributes whose values differ, `but` those of some operators."""
    for key in sorted(old.attributes.keys() | new.attributes.keys()):
        had, has = old.attributes.get(key, Counter()), new.attributes.get(key, Counter())
        if key[0] not in but and had != has:
            gone, come = had - has, has - had
            yield "attributes", f"{key[0]}.{key[1]}: {_values(gone)} -> {_values(come)}", ""


def _constants(use: Use, old: Sequence[Held], new: Sequence[Held]) -> Iterator[Difference]:
    """Yield how constants for one use, as many before as after, differ: in type, and in values of one shared type."""
    types, others = (Counter(type_ for type_, _, _ in held) for held in (old, new))
    if types != others:
        yield "attributes", " ".join(use), f"{min(types - others)} -> {min(others - types)}"
    for kept in sorted(types & others)[:1]:
        before, after = _first_values(old, kept), _first_values(new, kept)
        changed = (f" {one} -> {other}" for one, other in zip(before, after, strict=False) if one != other)
        # TOSA writes as constants of this type what other formats write as attributes: no weight has changed.
        kind = "attributes" if use[2] == "SHAPE" else "constants"
        yield kind, " ".join(use), f"{kept}{next(changed, '')}"


def _first_values(held: Sequence[Held], type_: str) -> list[str]:
    """Return the first values of the first constant of a type."""
    return next(first.split() for its_type, _, first in held if its_type == type_)


def _wiring(old: Reading, new: Reading) -> Iterator[Difference]:
    """Yield how payloads of the same operators and constants differ."""
    for name in sorted(old.payloads.keys() & new.payloads.keys()):
        changes = [
            change
            for change in compare(old.payloads[name], new.payloads[name]).changes
            if change.content and getattr(change, "owner", "") != "payload"
        ]
        if changes:
            yield _of_wiring(changes)
            return


def _of_wiring(changes: Sequence[Change]) -> Difference:
    """Return the sum of a payload's changes."""
    lacked = [change for change in changes if _is_of_one_format(change)]
    if len(lacked) == len(changes):
        names = sorted({change.name for change in lacked})
        return "attributes", f"fields that only one of the formats has: {', '.join(names)}", ""
    if all(isinstance(change, BoundaryChanged) and change.order_only for change in changes):
        return "wiring", "a delegate's inputs or outputs in a different order", ""
    rewired = [change.operator for change in changes if isinstance(change, EdgeRewired)]
    return "wiring", "operands connected differently", (rewired or [""])[0]


def _is_of_one_format(change: Change) -> TypeGuard[AttributeChanged]:
    return isinstance(change, AttributeChanged) and ABSENT in (change.before, change.after)


def _changes(old: Counter[str], new: Counter[str]) -> Iterator[tuple[str, int]]:
    for name in sorted({*old, *new}):
        if old[name] != new[name]:
            yield name, new[name] - old[name]


def _values(counter: Counter[str]) -> str:
    names = sorted(counter)
    return ", ".join(names[:SHOWN_VALUES]) + (", …" if len(names) > SHOWN_VALUES else "") or ABSENT
