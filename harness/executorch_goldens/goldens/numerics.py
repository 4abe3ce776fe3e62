"""What was checked of an artifact beyond its reproducibility: the fact ``numerics`` of its golden."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_FAILS, _NOT_RUN = "none: lowering fails", "not run: "
_CONSTANTS, _IN_EAGER = "; folded constants equal", "; with eager in place of "
_RECORDED, _UNJUDGED = "; recorded: ", "; not judged on "
_CHECKED = re.compile(
    r"outputs against eager (?:within 2\^(-?\d{1,4}) of the largest value|equal to the last bit)"
    rf"({_CONSTANTS})?(?:{_IN_EAGER}([^;]+))?(?:{_RECORDED}([^;]+))?((?:{_UNJUDGED}.+)?)"
)


@dataclass(frozen=True)
class Numerics:
    """What was checked, and to which bound.

    Attributes
    ----------
    power
        The largest tolerance of an output as a power of two, a part of its largest value; None for equality.
    constants
        Whether folded constants were found in the delegates.
    in_eager
        Operators that ran in eager, as the runtime has no kernel for them.
    recorded, unjudged
        Names of the samples that the case gives itself, and of those that were left out, by why.
    not_run, fails
        Why the program was not run, empty where it was; and whether there is none, as lowering fails.
    """

    power: int | None = None
    constants: bool = False
    in_eager: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    unjudged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    not_run: str = ""
    fails: bool = False

    @property
    def equal(self) -> bool:
        """True if the outputs are eager's to the last bit."""
        return self.power is None and not self.not_run and not self.fails

    def text(self) -> str:
        """Return the value of the fact.

        >>> Numerics(-7, constants=True, unjudged=(("eager raises OSError", ("zeros", "drawn")),)).text()
        'outputs against eager within 2^-7 of the largest value; folded constants equal; not judged on zeros, drawn: \
eager raises OSError'
        """
        if self.fails or self.not_run:
            return _FAILS if self.fails else _NOT_RUN + self.not_run
        within = (
            "equal to the last bit" if self.power is None else f"within 2^{self.power} of the largest value"
        )
        lists = ((_IN_EAGER, self.in_eager), (_RECORDED, self.recorded))
        also = "".join(words + ", ".join(names) for words, names in lists if names)
        unjudged = "".join(f"{_UNJUDGED}{', '.join(names)}: {why}" for why, names in self.unjudged)
        return f"outputs against eager {within}{_CONSTANTS if self.constants else ''}{also}{unjudged}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what the value of the fact says, the reverse of `text`; None for any other.

        A name with a comma, of a sample of several methods, is read as two: nothing depends on it.
        """
        if text == _FAILS or text.startswith(_NOT_RUN):
            return cls(fails=True) if text == _FAILS else cls(not_run=text.removeprefix(_NOT_RUN))
        if (found := _CHECKED.fullmatch(text)) is None:
            return None
        power, constants, *lists, unjudged = found.groups()
        in_eager, recorded = (tuple(names.split(", ")) if names else () for names in lists)
        left_out = (part.rpartition(": ") for part in unjudged.split(_UNJUDGED)[1:])
        unjudged_by_why = tuple((why, tuple(names.split(", "))) for names, _, why in left_out)
        return cls(int(power) if power else None, bool(constants), in_eager, recorded, unjudged_by_why)
