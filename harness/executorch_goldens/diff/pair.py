"""Two artifacts of a cell, and how their texts and payloads differ."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from executorch_goldens.diff.changes import ConstantChanged, DigestChanged
from executorch_goldens.diff.payloads import NOTHING, Differences, compare
from executorch_goldens.goldens import equality
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.outline import Outline, OutlineError
from executorch_goldens.goldens.record import DELEGATE, MANIFEST, PROGRAM, Record


@dataclass(frozen=True)
class Pair:
    """Two artifacts of a cell: how what they consist of differs is found once, when it is first asked for.

    Raises
    ------
    executorch_goldens.goldens.outline.OutlineError, executorch_goldens.goldens.inventory.InventoryError
        What is asked for, where a section is none of the harness's.

    Attributes
    ----------
    labels
        What messages call the two artifacts.
    """

    before: Record
    after: Record
    labels: Labels = OF_RUN

    def forget(self) -> None:
        """Let go of what was read of payloads: it takes more memory than their texts, and what was found of it."""
        for side in (self.before, self.after):
            side.outlines.forget()

    # Texts

    @cached_property
    def compared(self) -> tuple[Record, Record]:
        """What of both is compared (`equality.compared`)."""
        return equality.compared(self.before, self.after), equality.compared(self.after, self.before)

    @property
    def equal(self) -> bool:
        """True if both are the same artifact."""
        return self.compared[0] == self.compared[1]

    @property
    def differing(self) -> list[str]:
        """Names of the sections in which what is compared differs, and of the facts."""
        old, new = (dict(side.sections) | {MANIFEST: side.facts} for side in self.compared)
        return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]

    @cached_property
    def sides(self) -> tuple[Record, Record]:
        """Both, with the whole texts of their programs where these are at hand."""
        return self.before.beside(self.after), self.after.beside(self.before)

    # Payloads

    def payloads(self, name: str) -> tuple[Outline, Outline]:
        """Return both payloads of a section."""
        one, other = (side.outlines.read(side.sections[name]) for side in self.sides)
        return one, other

    @cached_property
    def changes(self) -> Mapping[str, Differences]:
        """The differences of each payload that both have, by its section."""
        one, other = (side.sections for side in self.sides)
        names = [name for name in one if name in other and (name == PROGRAM or name.startswith(DELEGATE))]
        return {
            name: NOTHING if one[name] == other[name] else compare(*self.payloads(name)) for name in names
        }

    @property
    def in_digest(self) -> bool:
        """True if programs that can be read differ in what goldens have as a digest only."""
        with contextlib.suppress(OutlineError):
            return any(isinstance(each, DigestChanged) for each in self.changes.get(PROGRAM, NOTHING).changes)
        return False

    @cached_property
    def moved(self) -> float | None:
        """By which part of their largest value constants moved at most; None where none is known to have."""
        changes = (change for each in self.changes.values() for change in each.changes)
        parts = (change.moved for change in changes if isinstance(change, ConstantChanged))
        return max((part for part in parts if part is not None), default=None)
