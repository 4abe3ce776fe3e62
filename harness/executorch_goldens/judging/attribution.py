"""Says which factor of a variation a disagreement follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: `Attribution.factor` of an artifact that follows no factor.
NONE = "none"


@dataclass(frozen=True)
class Attribution:
    """The factor that the difference between two variations of a cell follows.

    Attributes
    ----------
    factor
        The names of factors that make the difference, each alone, joined by ``, ``; two that make it only together,
        joined by `` + ``; `NONE` where no factor does; None where it is not known.
    """

    line: str
    factor: str | None = None


def alone(followed: Sequence[str], known: Sequence[str]) -> Attribution:
    """Say which factors, of all that are known, make the difference, each without the others.

    >>> alone(["heap", "history"], ["hash seed", "heap", "history"]).line
    'follows the heap and the history, each alone, as an order by address does; not the hash seed'
    """
    each = ", each alone" if len(followed) > 1 else ""
    # Other allocations, or another order of them, move addresses as well.
    address = ", as an order by address does" if each and "heap" in followed else ""
    others = [name for name in known if name not in followed]
    exception = f"; not the {listed(others, 'or')}" if others else ""
    return Attribution(f"follows {_the(followed)}{each}{address}{exception}", ", ".join(followed))


def together(pairs: Sequence[tuple[str, str]], known: Sequence[str]) -> Attribution:
    """Say which pairs of factors make the difference, where none of those known does alone."""
    if not pairs:
        return Attribution(
            f"follows three or more together of {_the(known)}; none of them alone, and no two of them"
        )
    names = "; or ".join(f"{_the(pair)} together" for pair in pairs)
    return Attribution(f"follows {names}; none of them alone", ", ".join(" + ".join(pair) for pair in pairs))


def gone(exports: int) -> Attribution:
    """Say that further exports agree, under both variations and with each factor changed."""
    return Attribution(
        f"did not come back in {exports} exports, with each factor changed alone and with all of them changed"
    )


def unrepeated(variation: str) -> Attribution:
    """Say that exports differ though everything in memory was the same when they began."""
    return Attribution(
        f"follows nothing that is varied: exports under {variation} that begin with the same memory differ as well, "
        "as a time or a random number makes them",
        NONE,
    )


def by_address(variation: str) -> Attribution:
    """Say that exports differ that share every seed and the directory, unless they begin with the same memory."""
    return Attribution(
        f"follows the heap: exports under {variation} that begin with the same memory agree, and others differ, as an "
        "order by address makes them",
        "heap",
    )


def constant(variations: int) -> Attribution:
    """Report that the defect is the same under every variation."""
    return Attribution(f"follows nothing that is varied: the same under all {variations} variations", NONE)


def listed(names: Sequence[str], word: str) -> str:
    """Return names as a sentence has them.

    >>> listed(["heap", "listings", "history"], "or")
    'heap, listings or history'
    """
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last


def _the(names: Sequence[str]) -> str:
    return listed([f"the {name}" for name in names], "and")
