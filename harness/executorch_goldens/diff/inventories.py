"""Compares the inventories of two artifacts of a cell."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from executorch_goldens.diff.changes import AttributeChanged, BoundaryChanged, Change, EdgeRewired
from executorch_goldens.diff.edits import (
    ATTRIBUTES,
    CONSTANTS,
    OPERATORS,
    SHOWN_VALUES,
    Attribute,
    Constants,
    Delegates,
    Edit,
    Failing,
    FormatFields,
    Operators,
    Rewired,
    listed,
)
from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.pair import Pair
from executorch_goldens.diff.payloads import graph_pairs
from executorch_goldens.diff.values import ABSENT
from executorch_goldens.goldens.inventory import Held, Inventory, Use, constants
from executorch_goldens.goldens.outline import NUMBERING

#: Positions, sizes, deviations, and the sample that showed it, as in ``output 0 (drawn)``, in the reason of a
#: failure: a different one is no different failure.
INCIDENTAL = re.compile(r"\b(?:0x[0-9a-f]+|\d[\d.]*(?:e-?\d+)?)\b|(?<=\d) \([a-z ]+\)")
#: Characters of a value that are shown.
SHOWN_CHARACTERS = 60


def differences(old: Inventory, new: Inventory, found: Pair) -> Iterator[Edit]:
    """Yield every difference between two inventories.

    Parameters
    ----------
    found
        The difference of their payloads.
    """
    contents = list(_contents(old, new, found))
    yield from contents or _wiring(old, new, found)


def _differing(old: Inventory, new: Inventory) -> list[str]:
    """Return the names of the payloads that both have, and that differ."""
    return [
        name
        for name in sorted(old.payloads.keys() & new.payloads.keys())
        if old.payloads[name] != new.payloads[name]
    ]


def _contents(old: Inventory, new: Inventory, found: Pair) -> Iterator[Edit]:
    """Yield differences in failures, delegates, operators, attributes and constants, however these are connected."""
    if old.failure or new.failure:
        yield from _failures(old.failure or "", new.failure or "")
        return
    if old.delegates != new.delegates:
        had, has = old.delegates.total(), new.delegates.total()
        yield Delegates("delegates" if has else "gone", (has > had) - (has < had), had, has)
    for name, more in _changes(old.outside, new.outside):
        yield Operators("outside" if more > 0 else "taken", name, more > 0, more)
    changes = dict(_changes(old.operators, new.operators))
    for name, more in changes.items():
        yield Operators(OPERATORS, name, more > 0, more)
    # Where operators were gained or lost, that is reported, and not their attributes as well.
    alike = old.attributes == new.attributes and old.constants == new.constants
    values, places = ({}, {}) if alike else _places(old, new, found)
    for key in sorted(old.attributes.keys() | new.attributes.keys()):
        before, after = old.attributes.get(key, Counter()), new.attributes.get(key, Counter())
        if key[0] not in changes and before != after:
            pairs = values.get(key) or [(_values(before - after), _values(after - before))]
            shown = [_pair(*pair) for pair in dict.fromkeys(pairs)]
            yield Attribute(ATTRIBUTES, *key, tuple(shown[:SHOWN_VALUES]), len(shown) > SHOWN_VALUES)
    for use in sorted(old.constants.keys() | new.constants.keys()):
        held, holds = old.constants.get(use, Counter()), new.constants.get(use, Counter())
        if held != holds and held.total() == holds.total():
            yield from _constants(use, held - holds, holds - held, places.get(use, ()))
        elif held != holds and use[0] not in changes:
            yield Constants(ATTRIBUTES, *use, (("", held.total(), holds.total()),))


def _failures(old: str, new: str) -> Iterator[Edit]:
    """Yield how failures differ; empty where a release lowers the cell."""
    if INCIDENTAL.sub("", old) == INCIDENTAL.sub("", new):
        return
    yield Failing(
        "differently" if old and new else "fails" if new else "lowers", new or old, old if new else ""
    )


def _places(
    old: Inventory, new: Inventory, found: Pair
) -> tuple[Mapping[tuple[str, str], list[tuple[str, str]]], Mapping[Use, list[tuple[Held, Held]]]]:
    """Return what differs in one place of the graphs of two artifacts, before and after, in the order of the operators.

    Returns
    -------
    values, held
        Values by operator and attribute; constants by their use.
    """
    values: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    held: dict[Use, list[tuple[Held, Held]]] = defaultdict(list)
    payloads = (found.payloads(name) for name in _differing(old, new))
    for one, other in (pair for each in payloads for pair in graph_pairs(*(side.graphs for side in each))):
        before, after = ({at: (use, had) for at, use, had in constants(each)} for each in (one, other))
        matching = Pairing(one, other).matching.forth
        for ours, theirs in sorted(matching.items()):
            operator, its = one.operators[ours], other.operators[theirs]
            for name, value in operator.attributes.items():
                if name not in NUMBERING and its.attributes.get(name, value) != value:
                    values[operator.type, name].append((value, its.attributes[name]))
        for (number, operand), (use, had) in before.items():
            its_use, has = after.get((matching.get(number, -1), operand), (None, had))
            if its_use == use and has != had:
                held[use].append((had, has))
    return values, held


def _constants(
    use: Use, gone: Counter[Held], come: Counter[Held], places: Sequence[tuple[Held, Held]]
) -> Iterator[Edit]:
    """Yield how constants for one use, as many before as after, differ: in type, and in values of one shared type.

    Parameters
    ----------
    places
        Places that are shown as before and after: they alone differ in one place of the graph.
    """
    types, others = (Counter(type_ for type_, _, _ in held.elements()) for held in (gone, come))
    if types != others:
        moved = ((one[0], other[0]) for one, other in places if one[0] != other[0])
        pair = next(moved, (_values(types - others), _values(others - types)))
        yield Constants(ATTRIBUTES, *use, (("", *pair),))
    if kept := sorted(types & others):
        changed = _changed([(one, other) for one, other in places if one[0] == other[0]])
        # TOSA writes as constants of this type what other formats write as attributes: no weight has changed.
        kind = ATTRIBUTES if use[2] == "SHAPE" else CONSTANTS
        shown = changed[:SHOWN_VALUES] or [(kept[0], "", "")]
        yield Constants(kind, *use, tuple(shown), len(changed) > SHOWN_VALUES)


def _changed(places: Sequence[tuple[Held, Held]]) -> list[tuple[str, str, str]]:
    """Return the type of constants, empty for that of those before, and their first values that differ.

    >>> _changed([(("INT8[1]", "a", "11"), ("INT8[1]", "b", "8")), (("INT8[1]", "c", "1 2"), ("INT8[1]", "d", "1 3"))])
    [('INT8[1]', '11', '8'), ('', '2', '3')]
    """
    shown: dict[tuple[str, str, str], None] = {}
    last = ""
    for (type_, _, one), (_, _, other) in places:
        pairs = zip(one.split(), other.split(), strict=False)
        before, after = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
        shown["" if type_ == last and before != after else type_, before, after] = None
        last = type_
    return [*shown]


def _wiring(old: Inventory, new: Inventory, found: Pair) -> Iterator[Edit]:
    """Yield how payloads of the same operators and constants differ."""
    for name in _differing(old, new):
        changes = [
            change
            for change in found.changes[name].changes
            if change.content and getattr(change, "owner", "") != "payload"
        ]
        if changes:
            yield _of_wiring(changes)
            return


def _of_wiring(changes: Sequence[Change]) -> Edit:
    """Return the sum of a payload's changes."""
    lacked = [change for change in changes if _is_of_one_format(change)]
    if len(lacked) == len(changes):
        names = sorted({change.name for change in lacked})
        return FormatFields(ATTRIBUTES, tuple(names))
    if all(isinstance(change, BoundaryChanged) and change.order_only for change in changes):
        return Rewired("wiring", order_only=True)
    rewired = (change.operator for change in changes if isinstance(change, EdgeRewired))
    return Rewired("wiring", order_only=False, operator=next(rewired, ""))


def _is_of_one_format(change: Change) -> TypeGuard[AttributeChanged]:
    return isinstance(change, AttributeChanged) and ABSENT in (change.before, change.after)


def _changes(old: Counter[str], new: Counter[str]) -> Iterator[tuple[str, int]]:
    for name in sorted({*old, *new}):
        if old[name] != new[name]:
            yield name, new[name] - old[name]


def _values(counter: Counter[str]) -> str:
    return listed(sorted(counter)[:SHOWN_VALUES], len(counter) > SHOWN_VALUES) or ABSENT


def _pair(before: str, after: str) -> tuple[str, str]:
    """Return two values, long ones from a little before the place where they differ.

    >>> _pair("NEAREST", "BILINEAR"), _pair("a" * 70 + "b", "a" * 70 + "c")
    (('NEAREST', 'BILINEAR'), ('…aaaaaaaab', '…aaaaaaaac'))
    """
    start = 0
    if max(len(before), len(after)) > SHOWN_CHARACTERS:
        alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        start = max(sum(1 for _ in alike) - 8, 0)
    first, end = "…" if start else "", start + SHOWN_CHARACTERS
    one, other = (f"{first}{each[start:end]}{'…' if each[end:] else ''}" for each in (before, after))
    return one, other
