"""Known defects of a zoo with compact goldens: an update decides them, a run accepts them while they match.

They name their cause by its first part, what is wrong, so that one decision is about all cells that show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from executorch_goldens.artifact import Killed
from executorch_goldens.goldens.causes import general
from executorch_goldens.goldens.decisions import KNOWN, Decision
from executorch_goldens.judging.verdict import OF_OWN_FILE, Verdict, cause

#: Verdicts that no artifact follows from, or that the next run may not find, or that are a person's to decide: these
#: are not accepted.
NEVER = ("timed-out", "out-of-memory", "damaged-golden", "unexpected")
#: Signals from outside that end a process: the system that lacks memory, or a person.
FROM_OUTSIDE = ("SIGKILL",)


def is_defect(judged: Verdict) -> bool:
    """Return whether a verdict is one that an update accepts as a known defect."""
    lost = judged.casualty
    passing = judged.name in NEVER or (isinstance(lost, Killed) and lost.signal in FROM_OUTSIDE)
    return not (judged.recordable or judged.name == "stable" or passing or _is_ours(judged))


def _is_ours(judged: Verdict) -> bool:
    """Return whether the harness or a file of this repository failed: no release has that defect."""
    return judged.is_of_harness or judged.reason.startswith(OF_OWN_FILE) or judged.blames_case


def settled(stated: Iterable[Decision], release: str, judged: Mapping[str, Verdict]) -> Iterator[Decision]:
    """Yield decisions with the new state of the judged cells of a release: their defects, or none.

    A defect that is still the same keeps its decision, with what a person has said.
    """
    left = {name: each for name, each in judged.items() if is_defect(each)}
    for each in stated:
        if each.what != KNOWN or release not in each.releases:
            yield each
            continue
        for name in each.cells:
            found = left.get(name)
            if found is not None and each.verdict == found.name and each.names(cause(found)):
                del left[name]
            elif name in judged:
                others = tuple(version for version in each.releases if version != release)
                if others:
                    yield msgspec.structs.replace(each, releases=others, cells=(name,))
                continue
            yield msgspec.structs.replace(each, cells=(name,))
    for name, found in left.items():
        why = _written(general(found.reason) or found.name)
        yield Decision(KNOWN, found.name, why, releases=(release,), cells=(name,))


def _written(text: str) -> str:
    """Return a text as TOML can hold it: half of a pair of UTF-16 is there as its escape."""
    return text.encode("utf-8", "backslashreplace").decode()
