"""The passes that changed a graph, of one export beside another, as a timeline."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from executorch_goldens.artifact import PassRun
from executorch_goldens.goldens.record import TRACE, Record

#: Both exports have the run with the same result; both have it, with another; only one has it.
SAME, DIFFERS, BEFORE, AFTER = "same", "differs", "before", "after"


@dataclass(frozen=True)
class PassStep:
    """A run of a pass, or a stage, in one export or in both.

    Attributes
    ----------
    before, after
        Fingerprint of what it left; of a partitioner, its tags. Empty where it did not run, or changed nothing.
    first
        Whether it is the first whose result is not the same.
    """

    state: str
    pipeline: str
    name: str
    before: str
    after: str
    first: bool = False


def timeline(before: Record | None, after: Record) -> list[PassStep]:
    """Return the passes of an artifact beside those of `before`; none where it has no trace."""
    now = after.trace
    if before is None or TRACE not in before.sections:
        return [PassStep(SAME, run.pipeline, run.name, "", run.fingerprint) for run in now]
    steps = list(_steps(before.trace, now))
    first = next((at for at, step in enumerate(steps) if step.state != SAME), None)
    if first is not None:
        steps[first] = replace(steps[first], first=True)
    return steps


def _steps(before: Sequence[PassRun], after: Sequence[PassRun]) -> Iterator[PassStep]:
    ours, theirs = ([(run.pipeline, run.name) for run in runs] for runs in (before, after))
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            for one, other in zip(before[i1:i2], after[j1:j2], strict=True):
                state = SAME if one.fingerprint == other.fingerprint else DIFFERS
                yield PassStep(state, one.pipeline, one.name, one.fingerprint, other.fingerprint)
            continue
        for run in before[i1:i2]:
            yield PassStep(BEFORE, run.pipeline, run.name, run.fingerprint, "")
        for run in after[j1:j2]:
            yield PassStep(AFTER, run.pipeline, run.name, "", run.fingerprint)
