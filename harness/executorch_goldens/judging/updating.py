"""Decides which goldens may be written, and when one may not replace another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from executorch_goldens.goldens.record import Record
from executorch_goldens.zoo import variations


@dataclass(frozen=True)
class Updating:
    """The changes of goldens that a run may write.

    Attributes
    ----------
    new
        Goldens of cells that have none.
    changed
        Goldens of every cell: those that exist are replaced, or confirmed by more variations.
    """

    new: bool = False
    changed: bool = False

    @property
    def any(self) -> bool:
        """True if anything may be written."""
        return self.new or self.changed


class Fewer(NamedTuple):
    """How many variations a golden names, and how many the one that would replace it."""

    before: int
    now: int


def fewer(reviewed: Record, made: Record) -> Fewer | None:
    """Return that the golden-to-be `made` names fewer variations than the golden that it replaces; or None.

    More than the full number are not asked for again: a golden that was confirmed by others names them as well.
    """
    before, now = len(reviewed.variations), len(made.variations)
    return None if now >= min(before, len(variations.HASH_SEEDS)) else Fewer(before, now)
