"""Describes a cell's difference from its golden, in the same words for every cell that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from executorch_goldens.goldens import equality, golden, weights
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.reading import Reading, reading
from executorch_goldens.goldens.weights import MODEL
from executorch_goldens.judging.likeness import unnumbered
from executorch_goldens.review.differences import differences
from executorch_goldens.review.drift import KINDS
from executorch_goldens.structure import ConstantChanged, compare
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED

#: Of a cell that has no golden.
NEW = "new"
#: Kind of edits that are in no reading: names, order, and facts of the program around its delegates.
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
#: Fields of a manifest that follow from what is compared elsewhere.
FOLLOWING = ("delegate", "pte", golden.LAYOUT)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Edit:
    """One difference, without parts of a single cell.

    Attributes
    ----------
    kind
        One of `ORDER`.
    """

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
        In all delegates, by type; types with an unchanged count are left out.
    program, constants
        Bytes of the ``.pte``, and of the constants in it.
    """

    operators: dict[str, int] = field(default_factory=dict)
    program: int = 0
    constants: int = 0


def edits(
    before: Texts | None, after: Texts, *, delegates: bool = True, labels: Labels = OF_RUN
) -> dict[Edit, str]:
    """Return how `after` differs from `before`, a golden, each with this cell's detail; none is new.

    Parameters
    ----------
    delegates
        Whether the cell's target makes delegates, so that a program without one is worth a word.
    labels
        What the edits call the two.
    """
    new = reading(after)
    if before is None:
        return {Edit(NEW, _alone(new, delegates, f"no {labels.old}")): ""}
    old = reading(before)
    names = weights.changed(before, after)
    model = {Edit(MODEL, weights.named(names, labels)): ""} if names else {}
    found = model | {
        _general(kind, what, old, new): detail or what for kind, what, detail in differences(old, new)
    }
    return found | dict.fromkeys((*_manifest(before, after), *(() if found else _texts(before, after))), "")


def _alone(new: Reading, delegates: bool, unlike: str) -> str:
    if new.failure:
        return f"{FAILS}: {new.failure}; {unlike}"
    return unlike if new.delegates or not delegates else f"{UNDELEGATED}; {unlike}"


def _general(kind: str, what: str, old: Reading, new: Reading) -> Edit:
    """Return a difference of a reading without values and numbers, which differ from cell to cell."""
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


def _manifest(before: Texts, after: Texts) -> Iterator[Edit]:
    old = golden.fields(equality.compared(before, after))
    new = golden.fields(equality.compared(after, before))
    for name in dict.fromkeys([*old, *new]):
        # Where lowering fails, or no longer does, the checks follow from that.
        follows = name == "numerics" and (golden.FAILURE in before) != (golden.FAILURE in after)
        if old.get(name) != new.get(name) and not name.startswith(FOLLOWING) and not follows:
            yield Edit(TEXT, f"manifest: {name}")


def _texts(before: Texts, after: Texts) -> Iterator[Edit]:
    """Yield differences of artifacts that compute the same: in names, in order, around the delegates."""
    found: dict[Edit, None] = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name, ""), after.get(name, "")
        if old == new:
            continue
        if name.startswith("delegate_") and old and new:
            found |= dict.fromkeys(_payload("delegate", old, new))
        elif name == golden.GRAPH:
            renamed = unnumbered(old) == unnumbered(new)
            found[Edit(TEXT, "graph: names and order only" if renamed else "graph: operators' arguments")] = (
                None
            )
    yield from found or _payload("program", before.get(golden.PROGRAM, ""), after.get(golden.PROGRAM, ""))


def _payload(what: str, old: str, new: str) -> Iterator[Edit]:
    if old == new or not old or not new:
        return
    differences = compare(old, new)
    changes = [change for change in differences.changes if change.content]
    if not changes:
        yield Edit(TEXT, f"{what}: {differences.verdict}")
    for change in changes:
        if isinstance(change, ConstantChanged):
            yield Edit("constants", f"of the {what}")
        else:
            yield Edit(TEXT, f"{what}: {_NUMBER.sub('…', next(change.lines()).partition(': ')[0])}")


def quantities(before: Texts | None, after: Texts) -> Quantities:
    """Return how much more there is in `after` than in `before`; nothing where one of them does not lower."""
    if before is None:
        return Quantities()
    old, new = reading(before), reading(after)
    if old.failure or new.failure:
        return Quantities()
    names = sorted({*old.operators, *new.operators})
    more = {name: new.operators[name] - old.operators[name] for name in names}
    return Quantities(
        {name: count for name, count in more.items() if count},
        new.size - old.size,
        new.constant_bytes - old.constant_bytes,
    )
