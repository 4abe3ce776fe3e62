"""How two artifacts differ, in lines for a person."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from executorch_goldens.diff import equality
from executorch_goldens.diff.payloads import compare
from executorch_goldens.goldens.record import MANIFEST, Record

#: Lines of a section's difference that are shown; the whole sections are beside results.jsonl.
SHOWN_LINES = 12
#: Changes of a payload that are shown.
SHOWN_CHANGES = 4


def from_golden(reviewed: Record, made: Record, old_label: str, new_label: str) -> Iterator[str]:
    """Yield how what is compared of an artifact differs from its golden; digests only where nothing else does."""
    old, new = equality.compared(reviewed, made), equality.compared(made, reviewed)
    if old.sections != new.sections:
        old, new = equality.without_digests(old), equality.without_digests(new)
    yield from difference(old, new, old_label, new_label)


def difference(before: Record, after: Record, old_label: str, new_label: str) -> Iterator[str]:
    """Yield how two records differ: payloads by structure, facts and other sections by their first lines."""
    before, after = before.beside(after), after.beside(before)
    ours, theirs = before.texts(), after.texts()
    for name in dict.fromkeys([*ours, *theirs]):
        if ours.get(name) == theirs.get(name):
            continue
        if name not in ours or name not in theirs:
            yield f"{name}: only in {old_label if name in ours else new_label}"
            continue
        yield f"{name}: - {old_label}, + {new_label}"
        one, other = before.payload(name), after.payload(name)
        if one is not None and other is not None:
            lines = list(compare(one, other).lines(SHOWN_CHANGES))
        else:
            lines = list(lines_of(ours[name], theirs[name]))
        yield from (f"  {line}" for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield f"  … {len(lines) - SHOWN_LINES} more lines"


def lines_of(before: str, after: str) -> Iterator[str]:
    """Yield the lines that only one of two texts has."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    yield from (line for line in found if not line.startswith(("---", "+++", "@@")))


def differing(reviewed: Record, made: Record) -> list[str]:
    """Return the names of the sections in which an artifact differs from its golden, and of the facts."""
    sides = (equality.compared(reviewed, made), equality.compared(made, reviewed))
    old, new = (dict(side.sections) | {MANIFEST: side.facts} for side in sides)
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
