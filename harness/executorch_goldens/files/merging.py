"""Detects unresolved merges, by conflict markers in a file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

#: Beginnings and ends of conflicts (git-merge(1), "How conflicts are presented"): a line of equal signs may be text.
_CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)

#: Way out for a golden that a merge left.
WAY_OUT = (
    "Resolve the models and the code first, then run the cell with --snapshot-update, which records it "
    "again, and 'git add' it"
)


def conflict(text: str) -> str:
    """Return how a merge left a golden that holds `text`; empty where none did."""
    marked = _CONFLICT.search(text)
    if marked is None:
        return ""
    return f"was left by a merge, with a conflict in line {text.count(chr(10), 0, marked.start()) + 1}"


def conflict_in(file: Path) -> str:
    """Return how a merge left a file that cannot be read; empty where none did."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return "was left by a merge, with conflicts" if _CONFLICT.search(text) else ""


def take_a_side(file: Path, then: str = "run its cells with --snapshot-update") -> str:
    """Return how a file that the harness writes is resolved after a merge."""
    return f"take either side, 'git checkout --ours -- {shlex.quote(str(file))}', {then}, and 'git add' it"


def bring_back(file: Path, then: str) -> str:
    """Return how a committed file that cannot be used comes back; during a merge git has no single one.

    Parameters
    ----------
    then
        The command that updates one side of a merge.
    """
    conflict = conflict_in(file)
    if conflict:
        return f"it {conflict}: {take_a_side(file, then)}"
    return f"bring it back with 'git checkout -- {shlex.quote(str(file))}'"
