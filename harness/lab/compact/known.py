"""Known defects of a zoo with compact goldens: an update decides them, a run accepts them while they match.

They name their cause by its first part, what is wrong, so that one decision is about all cells that show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from executorch_goldens.artifact import Killed
from executorch_goldens.goldens.decisions import KNOWN, Decision, inline
from executorch_goldens.goldens.findings import Fault, NotFinished
from executorch_goldens.judging.verdict import Verdict

#: Verdicts that no artifact follows from, or that the next run may not find, or that are a person's to decide: these
#: are not accepted.
NEVER = ("timed-out", "out-of-memory", "damaged-golden", "unexpected")
#: Signals from outside that end a process: the system that lacks memory, or a person.
FROM_OUTSIDE = ("SIGKILL",)


def cause(defect: Decision) -> str:
    """Return what a known defect is, as its decision has it."""
    return inline(defect.finding) if defect.finding is not None else defect.why


def is_defect(judged: Verdict) -> bool:
    """Return whether a verdict is one that an update accepts as a known defect."""
    ended = [each.ended for each in judged.findings if isinstance(each, NotFinished)]
    from_outside = any(isinstance(each, Killed) and each.signal in FROM_OUTSIDE for each in ended)
    passing = judged.name in NEVER or from_outside
    return not (judged.recordable or judged.name == "stable" or passing or _is_ours(judged))


def _is_ours(judged: Verdict) -> bool:
    """Return whether the harness or a file of this repository failed: no release has that defect."""
    return judged.fault in (Fault.HARNESS, Fault.REPOSITORY) or judged.blames_case


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
            if found is not None and each.verdict == found.name and each.is_about(found.cause):
                del left[name]
            elif name in judged:
                others = tuple(version for version in each.releases if version != release)
                if others:
                    yield msgspec.structs.replace(each, releases=others, cells=(name,))
                continue
            yield msgspec.structs.replace(each, cells=(name,))
    for name, found in left.items():
        what = {field: _written(value) for field, value in found.findings[0].key().items()}
        yield Decision(KNOWN, found.name, finding=what, releases=(release,), cells=(name,))


def _written(value: Any) -> Any:
    """Return a value of a key as TOML can hold it: half of a pair of UTF-16 is there as its escape."""
    if isinstance(value, list):
        return list(map(_written, value))
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
