"""How an artifact of a cell differs from another: from its golden, from the base's, or from another variation's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from executorch_goldens.diff import texts
from executorch_goldens.diff.changes import ConstantChanged
from executorch_goldens.diff.edits import CONSTANTS, TEXT, Aside, Edit, Weights
from executorch_goldens.diff.inventories import differences
from executorch_goldens.diff.likeness import Likeness, unnumbered
from executorch_goldens.diff.pair import Pair
from executorch_goldens.diff.payloads import Differences
from executorch_goldens.diff.quantities import Quantities, directions
from executorch_goldens.goldens import equality
from executorch_goldens.goldens.golden import LAYOUT
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.record import GRAPH, MODEL, PROGRAM, Record

#: Facts that follow from what is compared elsewhere.
FOLLOWING = ("delegate", "pte", LAYOUT)


class Difference(Likeness):
    """The difference of two artifacts of a cell: each part of it is found once, when it is first asked for."""

    def lines(self) -> Iterator[str]:
        """Yield it for a person."""
        return (line for _, line in texts.by_section(self, of_golden=True))

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """All of it, each difference once."""
        return tuple({each: each for each in edits(self)}.values())

    @cached_property
    def quantities(self) -> Quantities:
        """How much more or less there is."""
        return Quantities.between(self.before.inventory, self.after.inventory, self.moved)

    def directions(self) -> Iterator[str]:
        """Yield a line for each quantity that differs, those first that became worse."""
        return directions(self.before.inventory, self.after.inventory, self.quantities)


def of_inventories(old: Inventory, new: Inventory) -> Iterator[Edit]:
    """Yield how two artifacts differ of which no more is held than their inventories."""
    return differences(old, new, Pair(Record({}, old.payloads), Record({}, new.payloads)))


def edits(found: Pair) -> Iterator[Edit]:
    """Yield how two artifacts differ."""
    before, after = found.before, found.after
    contents = list(differences(before.inventory, after.inventory, found))
    if names := equality.changed_weights(*(each.sections.get(MODEL, "") for each in (before, after))):
        contents.insert(0, Weights(MODEL, tuple(names), found.labels.old))
    yield from contents
    yield from _facts(found)
    yield from () if contents else _sections(found)


def _facts(found: Pair) -> Iterator[Edit]:
    old, new = (each.facts for each in found.compared)
    for name in dict.fromkeys([*old, *new]):
        # Where lowering fails, or no longer does, the checks follow from that.
        follows = name == "numerics" and found.before.fails != found.after.fails
        if old.get(name) != new.get(name) and not name.startswith(FOLLOWING) and not follows:
            yield Aside(TEXT, "manifest", name)


def _sections(found: Pair) -> Iterator[Edit]:
    """Yield differences of artifacts that compute the same: in names, in order, around the delegates."""
    edited: list[Edit] = []
    for name in sorted(found.changes.keys() - {PROGRAM}):
        edited += _payload("delegate", found.changes[name])
    old, new = (each.sections.get(GRAPH, "") for each in (found.before, found.after))
    if old != new:
        renamed = unnumbered(old) == unnumbered(new)
        edited.append(Aside(TEXT, "graph", "names and order only" if renamed else "operators' arguments"))
    if not edited and PROGRAM in found.changes:
        edited += _payload("program", found.changes[PROGRAM])
    yield from edited


def _payload(part: str, differences: Differences) -> Iterator[Edit]:
    if differences.order_only:
        yield Aside(TEXT, part, differences.verdict)
    for change in differences.changes:
        if isinstance(change, ConstantChanged):
            yield Aside(CONSTANTS, part)
        elif change.content:
            yield Aside(TEXT, part, change.general)
