"""How an artifact of a cell differs from another: from its golden, from the base's, or from another variation's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from executorch_goldens.diff import texts
from executorch_goldens.diff.edits import Edit, edits
from executorch_goldens.diff.inventories import InventoryChange, differences
from executorch_goldens.diff.likeness import Likeness
from executorch_goldens.diff.pair import Pair
from executorch_goldens.diff.quantities import Quantities, directions
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.record import Record


class Difference(Likeness):
    """The difference of two artifacts of a cell: each part of it is found once, when it is first asked for."""

    def lines(self) -> Iterator[str]:
        """Yield it for a person."""
        return texts.from_golden(self)

    @cached_property
    def contents(self) -> tuple[InventoryChange, ...]:
        """How what both have differs, counted."""
        return tuple(differences(self.before.inventory, self.after.inventory, self))

    @cached_property
    def edits(self) -> Mapping[Edit, str]:
        """All of it, each with this cell's detail, in the same words for every cell that shows it."""
        return edits(self, self.contents)

    @cached_property
    def quantities(self) -> Quantities:
        """How much more or less there is."""
        return Quantities.between(self.before.inventory, self.after.inventory, self.moved)

    def directions(self) -> Iterator[str]:
        """Yield a line for each quantity that differs, those first that became worse."""
        return directions(self.before.inventory, self.after.inventory, self.quantities)


def of_inventories(old: Inventory, new: Inventory) -> Iterator[InventoryChange]:
    """Yield how two artifacts differ of which no more is held than their inventories."""
    return differences(old, new, Pair(Record({}, old.payloads), Record({}, new.payloads)))
