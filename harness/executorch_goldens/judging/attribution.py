"""The factor of a variation that a disagreement follows."""

from __future__ import annotations

import enum
from dataclasses import dataclass

#: `Attribution.factor` of an artifact that follows no factor.
NONE = "none"


class Follows(enum.StrEnum):
    """What is known of an `Attribution`."""

    #: Factors that make the difference, each alone; pairs of them that make it together; three or more together.
    ALONE = enum.auto()
    TOGETHER = enum.auto()
    SEVERAL = enum.auto()
    #: It did not come back.
    GONE = enum.auto()
    #: Exports differ though everything in memory was the same when they began; unless it was.
    NOTHING = enum.auto()
    ADDRESS = enum.auto()
    #: The defect is the same under every variation.
    CONSTANT = enum.auto()
    #: It is not known: an export that it takes ended early, the exports were made elsewhere, the time was over.
    LOST = enum.auto()
    ELSEWHERE = enum.auto()
    UNSOUGHT = enum.auto()


@dataclass(frozen=True)
class Attribution:
    """The factor that the difference between two variations of a cell follows.

    Attributes
    ----------
    follows
        What is known of it.
    factors
        Names of factors that make it, each alone, or in pairs.
    known
        The factors that were tried.
    exports
        Number of exports, or of variations, that show it.
    variation
        The variation under which exports were repeated.
    why
        Why it is not known: what an export came to, the option of what exports elsewhere, the seconds that it had.
    """

    follows: Follows
    factors: tuple[tuple[str, ...], ...] = ()
    known: tuple[str, ...] = ()
    exports: int = 0
    variation: str = ""
    why: str = ""

    @property
    def factor(self) -> str | None:
        """The names of factors that make the difference, each alone, joined by ``, ``; two that make it only together,
        joined by `` + ``; `NONE` where no factor does; None where it is not known.
        """
        if self.follows in (Follows.NOTHING, Follows.CONSTANT):
            return NONE
        if self.follows == Follows.ADDRESS:
            return "heap"
        return ", ".join(map(" + ".join, self.factors)) or None
