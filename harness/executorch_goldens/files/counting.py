"""Numbers with their nouns, in messages."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "cell"), count(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{number} {noun}{'s' if number != 1 else ''}"
