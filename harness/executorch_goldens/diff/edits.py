"""Describes a cell's difference from its golden, in the same words for every cell that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from executorch_goldens.diff import equality
from executorch_goldens.diff.changes import KINDS, NEW, TEXT, ConstantChanged
from executorch_goldens.diff.inventories import InventoryChange
from executorch_goldens.diff.likeness import unnumbered
from executorch_goldens.diff.pair import Pair
from executorch_goldens.diff.payloads import Differences
from executorch_goldens.goldens.golden import LAYOUT
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.labels import Labels
from executorch_goldens.goldens.record import GRAPH, MODEL, PROGRAM, Record
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED

#: Facts that follow from what is compared elsewhere.
FOLLOWING = ("delegate", "pte", LAYOUT)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Edit:
    """One difference, without parts of a single cell."""

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{KINDS[self.kind].words}{self.what}"

    def of_cell(self, detail: str) -> str:
        """Return it with a cell's detail, which may repeat it.

        >>> clamp = Edit("attributes", "CLAMP.max")
        >>> clamp.of_cell("CLAMP.max: 6 -> 2"), clamp.of_cell(""), Edit("operators", "CAST gained").of_cell("+1")
        ('CLAMP.max: 6 -> 2', 'CLAMP.max', 'CAST gained: +1')
        """
        return detail if detail.startswith(str(self)) else str(self) + (f": {detail}" if detail else "")

    @property
    def place(self) -> tuple[int, str]:
        """The place that a title names."""
        return [*KINDS].index(self.kind), self.what


def edits(found: Pair, contents: Iterable[InventoryChange]) -> dict[Edit, str]:
    """Return how an artifact differs from a golden, or from another artifact, each with this cell's detail."""
    before, after = found.before, found.after
    names = equality.changed_weights(*(each.sections.get(MODEL, "") for each in (before, after)))
    edited = {Edit(MODEL, equality.weights_named(names, found.labels)): ""} if names else {}
    for kind, what, detail in contents:
        edited[_general(kind, what, before.inventory, after.inventory)] = detail or what
    return edited | dict.fromkeys((*_facts(found), *(() if edited else _sections(found))), "")


def alone(made: Record, delegates: bool, labels: Labels) -> dict[Edit, str]:
    """Return the edit of a cell that has no golden.

    Parameters
    ----------
    delegates
        Whether its target makes delegates, so that a program without one is worth a word.
    """
    new, unlike = made.inventory, f"no {labels.old}"
    if new.failure:
        unlike = f"{FAILS}: {new.failure}; {unlike}"
    elif delegates and not new.delegates:
        unlike = f"{UNDELEGATED}; {unlike}"
    return {Edit(NEW, unlike): ""}


def _general(kind: str, what: str, old: Inventory, new: Inventory) -> Edit:
    """Return a difference of inventories without values and numbers, which differ from cell to cell."""
    if kind == "delegates":
        more = new.delegates.total() - old.delegates.total()
        what = (
            "more delegates" if more > 0 else "fewer delegates" if more < 0 else "delegates of other backends"
        )
    elif kind == "gone":
        what = "no delegate is left"
    elif kind == "attributes":
        what = what.partition(": ")[0]
    return Edit(kind, what)


def _facts(found: Pair) -> Iterator[Edit]:
    old, new = (each.facts for each in found.compared)
    for name in dict.fromkeys([*old, *new]):
        # Where lowering fails, or no longer does, the checks follow from that.
        follows = name == "numerics" and found.before.fails != found.after.fails
        if old.get(name) != new.get(name) and not name.startswith(FOLLOWING) and not follows:
            yield Edit(TEXT, f"manifest: {name}")


def _sections(found: Pair) -> Iterator[Edit]:
    """Yield differences of artifacts that compute the same: in names, in order, around the delegates."""
    edited: dict[Edit, None] = {}
    for name in sorted(found.changes.keys() - {PROGRAM}):
        edited |= dict.fromkeys(_payload("delegate", found.changes[name]))
    old, new = (each.sections.get(GRAPH, "") for each in (found.before, found.after))
    if old != new:
        renamed = unnumbered(old) == unnumbered(new)
        edited[Edit(TEXT, "graph: names and order only" if renamed else "graph: operators' arguments")] = None
    if not edited and PROGRAM in found.changes:
        edited |= dict.fromkeys(_payload("program", found.changes[PROGRAM]))
    yield from edited


def _payload(what: str, differences: Differences) -> Iterator[Edit]:
    if differences.order_only:
        yield Edit(TEXT, f"{what}: {differences.verdict}")
    for change in differences.changes:
        if isinstance(change, ConstantChanged):
            yield Edit("constants", f"of the {what}")
        elif change.content:
            yield Edit(TEXT, f"{what}: {_NUMBER.sub('…', next(change.lines()).partition(': ')[0])}")
