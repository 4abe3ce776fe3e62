"""Two texts side by side, around their differences."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

#: Lines before and after a change.
CONTEXT = 3


@dataclass(frozen=True)
class Hunk:
    """A place where two texts differ: the lines of each, and whether the other lacks them."""

    before: list[tuple[str, bool]]
    after: list[tuple[str, bool]]


def hunks(before: str, after: str) -> Iterator[Hunk]:
    r"""Yield the places where two texts differ.

    >>> list(hunks("a\nb\n", "a\nc\n"))
    [Hunk(before=[('a', False), ('b', True)], after=[('a', False), ('c', True)])]
    """
    ours, theirs = before.splitlines(), after.splitlines()
    for group in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_grouped_opcodes(CONTEXT):
        yield Hunk(
            [(line, tag != "equal") for tag, start, end, _, _ in group for line in ours[start:end]],
            [(line, tag != "equal") for tag, _, _, start, end in group for line in theirs[start:end]],
        )
