"""How two artifacts differ, in lines for a person."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from executorch_goldens.diff.pair import Pair
from executorch_goldens.goldens import equality

#: Lines of a section's difference that are shown; the whole sections are beside results.jsonl.
SHOWN_LINES = 12
#: Changes of a payload that are shown.
SHOWN_CHANGES = 4


def difference(found: Pair) -> Iterator[str]:
    """Yield how two records differ: payloads by structure, facts and other sections by their first lines."""
    return (line for _, line in by_section(found))


def by_section(found: Pair, of_golden: bool = False) -> Iterator[tuple[str, str]]:
    """Yield these lines, each after its section.

    Parameters
    ----------
    of_golden
        Whether only what is compared is shown, and digests only where nothing else differs.
    """
    before, after = found.sides
    if of_golden:
        old, new = found.compared
        if old.sections != new.sections:
            old, new = equality.without_digests(old), equality.without_digests(new)
        before, after = old.beside(new), new.beside(old)
    old_label, new_label = found.labels
    ours, theirs = before.texts(), after.texts()
    for name in dict.fromkeys([*ours, *theirs]):
        if ours.get(name) == theirs.get(name):
            continue
        if name not in ours or name not in theirs:
            yield name, f"{name}: only in {old_label if name in ours else new_label}"
            continue
        yield name, f"{name}: - {old_label}, + {new_label}"
        if name in found.changes:
            lines = list(found.changes[name].lines(SHOWN_CHANGES))
        else:
            lines = list(lines_of(ours[name], theirs[name]))
        yield from ((name, f"  {line}") for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield name, f"  … {len(lines) - SHOWN_LINES} more lines"


def lines_of(before: str, after: str) -> Iterator[str]:
    """Yield the lines that only one of two texts has."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    yield from (line for line in found if not line.startswith(("---", "+++", "@@")))
