"""Numbers with their nouns, and values by their type, in messages."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "cell"), count(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{number} {noun}{'s' if number != 1 else ''}"


def type_of(value: object) -> str:
    """Return the type of a value with its article; None is itself.

    >>> type_of(7), type_of("x"), type_of(None)
    ('an int', 'a str', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
