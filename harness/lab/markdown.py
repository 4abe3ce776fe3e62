"""Lines of Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence


def row(entries: Sequence[str]) -> str:
    r"""Return a line of a table.

    >>> row(["a|b", "2"])
    '| a\\|b | 2 |'
    """
    return f"| {' | '.join(entry.replace('|', chr(92) + '|') for entry in entries)} |"


def head(columns: Sequence[str]) -> tuple[str, str]:
    """Return the two lines that a table begins with.

    >>> head(["release", "cells"])
    ('| release | cells |', '|---|---|')
    """
    return row(columns), "|" + "---|" * len(columns)
