"""Numbers with their nouns, and values by their type, in messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

#: Names that a message lists.
SHOWN = 10


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "cell"), count(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{number} {noun}{'s' if number != 1 else ''}"


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """Return the first names of a list, `most` of them, and how many more there are.

    >>> some(["a", "b"]), some([str(number) for number in range(14)])
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 4 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table with each column as wide as its widest entry.

    >>> list(aligned([("cell", "bytes"), ("tosa-int/linear", "+8")]))
    ['cell             bytes', 'tosa-int/linear  +8']
    """
    listed = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    for row in listed:
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def in_seconds(value: float) -> str:
    """Return seconds with two digits at least.

    >>> in_seconds(0.4), in_seconds(9.96), in_seconds(125.4)
    ('0.4 s', '10 s', '125 s')
    """
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def type_of(value: object) -> str:
    """Return the type of a value with its article; None is itself.

    >>> type_of(7), type_of("x"), type_of(None)
    ('an int', 'a str', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def from_here(path: str | Path) -> str:
    """Return a path as a person in the working directory types it: without that directory."""
    return str(path).removeprefix(f"{Path.cwd()}/")
