"""What was checked of an artifact beyond its reproducibility: the fact ``numerics`` of its golden."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_FAILS, _NOT_RUN, _UNJUDGED = "none: lowering fails", "not run: ", "; not judged on "
_CHECKED = re.compile(
    r"outputs against eager (?:within 2\^(?P<power>-?\d{1,4}) of the largest value|equal to the last bit)"
    r"(?P<constants>; folded constants equal)?(?:; with eager in place of (?P<in_eager>[^;]+))?"
    rf"(?:; recorded: (?P<recorded>[^;]+))?(?P<unjudged>(?:{_UNJUDGED}.+)?)"
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
    recorded
        Names of the samples that the case gives itself.
    unjudged
        Why samples were left out, each with their names.
    not_run
        Why the program was not run; empty where it was.
    fails
        Whether lowering fails: there is nothing to check.
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
        constants = "; folded constants equal" if self.constants else ""
        in_eager = f"; with eager in place of {', '.join(self.in_eager)}" if self.in_eager else ""
        recorded = f"; recorded: {', '.join(self.recorded)}" if self.recorded else ""
        unjudged = "".join(f"{_UNJUDGED}{', '.join(names)}: {why}" for why, names in self.unjudged)
        return f"outputs against eager {within}{constants}{in_eager}{recorded}{unjudged}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what the value of the fact says, the reverse of `text`; None for any other.

        A name with a comma, of a sample of several methods, is read as two: nothing depends on it.
        """
        if text == _FAILS or text.startswith(_NOT_RUN):
            return cls(not_run=text.removeprefix(_NOT_RUN)) if text != _FAILS else cls(fails=True)
        found = _CHECKED.fullmatch(text)
        if found is None:
            return None
        in_eager, recorded = (
            found[name].split(", ") if found[name] else () for name in ("in_eager", "recorded")
        )
        unjudged = (part.rpartition(": ") for part in found["unjudged"].split(_UNJUDGED)[1:])
        return cls(
            int(found["power"]) if found["power"] else None,
            bool(found["constants"]),
            tuple(in_eager),
            tuple(recorded),
            tuple((why, tuple(names.split(", "))) for names, _, why in unjudged),
        )
