"""Describes a cell's difference from its golden, in the same words for every cell that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from executorch_goldens.diff import equality
from executorch_goldens.diff.changes import ConstantChanged
from executorch_goldens.diff.drift import KINDS
from executorch_goldens.diff.inventories import differences
from executorch_goldens.diff.likeness import unnumbered
from executorch_goldens.diff.payloads import compare
from executorch_goldens.goldens.golden import LAYOUT
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.outline import Outline
from executorch_goldens.goldens.record import GRAPH, MODEL, Record
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED

#: Kind of the edit of a cell that has no golden.
NEW = "new"
#: Kind of edits that are in no inventory: names, order, and facts of the program around its delegates.
TEXT = "text"
#: The order in which a title names edits: those that matter most to a reader first.
ORDER = (NEW, MODEL, *KINDS, TEXT)
#: Beginnings of titles by kind; other kinds name themselves.
WORDS = {
    "fails": "fails: ",
    "differently": "fails differently: ",
    "lowers": "no longer fails: ",
    "outside": "left to portable kernels: ",
    "taken": "no longer left to portable kernels: ",
    "constants": "constants with different values, ",
}
#: Facts that follow from what is compared elsewhere.
FOLLOWING = ("delegate", "pte", LAYOUT)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Edit:
    """One difference, without parts of a single cell."""

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{WORDS.get(self.kind, '')}{self.what}"

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
        return ORDER.index(self.kind), self.what


@dataclass(frozen=True)
class Quantities:
    """Changes in quantities against the golden; negative where there is less.

    Attributes
    ----------
    operators
        Operators of all delegates, by type; types with an unchanged count are left out.
    program, constants
        Bytes of the ``.pte``, and of the constants in it.
    """

    operators: dict[str, int] = field(default_factory=dict)
    program: int = 0
    constants: int = 0


def edits(
    before: Record | None, after: Record, *, delegates: bool = True, labels: Labels = OF_RUN
) -> dict[Edit, str]:
    """Return how `after` differs from `before`, a golden, each with this cell's detail; none is new.

    Parameters
    ----------
    delegates
        Whether the cell's target makes delegates, so that a program without one is worth a word.
    """
    new = after.inventory
    if before is None:
        return {Edit(NEW, _alone(new, delegates, f"no {labels.old}")): ""}
    old = before.inventory
    names = equality.changed_weights(*(each.sections.get(MODEL, "") for each in (before, after)))
    model = {Edit(MODEL, equality.weights_named(names, labels)): ""} if names else {}
    found = model | {
        _general(kind, what, old, new): detail or what for kind, what, detail in differences(old, new)
    }
    return found | dict.fromkeys((*_facts(before, after), *(() if found else _sections(before, after))), "")


def _alone(new: Inventory, delegates: bool, unlike: str) -> str:
    if new.failure:
        return f"{FAILS}: {new.failure}; {unlike}"
    return unlike if new.delegates or not delegates else f"{UNDELEGATED}; {unlike}"


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


def _facts(before: Record, after: Record) -> Iterator[Edit]:
    old, new = equality.compared(before, after).facts, equality.compared(after, before).facts
    for name in dict.fromkeys([*old, *new]):
        # Where lowering fails, or no longer does, the checks follow from that.
        follows = name == "numerics" and before.fails != after.fails
        if old.get(name) != new.get(name) and not name.startswith(FOLLOWING) and not follows:
            yield Edit(TEXT, f"manifest: {name}")


def _sections(before: Record, after: Record) -> Iterator[Edit]:
    """Yield differences of artifacts that compute the same: in names, in order, around the delegates."""
    found: dict[Edit, None] = {}
    before, after = before.beside(after), after.beside(before)
    for name in sorted(before.delegates.keys() & after.delegates.keys()):
        found |= dict.fromkeys(_payload("delegate", before.delegates[name], after.delegates[name]))
    old, new = before.sections.get(GRAPH, ""), after.sections.get(GRAPH, "")
    if old != new:
        renamed = unnumbered(old) == unnumbered(new)
        found[Edit(TEXT, "graph: names and order only" if renamed else "graph: operators' arguments")] = None
    if not found and before.program is not None and after.program is not None:
        found |= dict.fromkeys(_payload("program", before.program, after.program))
    yield from found


def _payload(what: str, old: Outline, new: Outline) -> Iterator[Edit]:
    differences = compare(old, new)
    changes = [change for change in differences.changes if change.content]
    if not changes and not differences.same:
        yield Edit(TEXT, f"{what}: {differences.verdict}")
    for change in changes:
        if isinstance(change, ConstantChanged):
            yield Edit("constants", f"of the {what}")
        else:
            yield Edit(TEXT, f"{what}: {_NUMBER.sub('…', next(change.lines()).partition(': ')[0])}")


def quantities(before: Record | None, after: Record) -> Quantities:
    """Return how much more there is in `after` than in `before`; nothing where one of them does not lower."""
    if before is None:
        return Quantities()
    old, new = before.inventory, after.inventory
    if old.failure or new.failure:
        return Quantities()
    names = sorted({*old.operators, *new.operators})
    more = {name: new.operators[name] - old.operators[name] for name in names}
    return Quantities(
        {name: count for name, count in more.items() if count},
        new.size - old.size,
        new.constant_bytes - old.constant_bytes,
    )
