"""Interprets an export without the blamed pass: compare LLVM's ``-opt-bisect-limit``."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.artifact import Outcome
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings.releases import Release
from executorch_goldens.zoo.variations import Omission


def proof(
    judged: Verdict,
    omission: Omission,
    gave_wrong: bool,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    release: Release,
) -> str:
    """Return what exports without the blamed pass prove; empty if nothing.

    Parameters
    ----------
    judged, gave_wrong
        The verdict, and whether the outputs of the exports that it is about are wrong (`Exports.gives_wrong`).

    Raises
    ------
    DecodeError
        When a payload is not what its format's schema says.
    """
    # An export that breaks without the pass proves nothing about it.
    if any(outcome.program is None for outcome in outcomes):
        return ""
    better, found = "", compare(judged.cell, outcomes, reviewed, release).verdict.name
    if found == "stable":
        better = "the artifact equals the golden"
    elif judged.name in verdict.DISAGREEING and found in RIGHT:
        better = "the variations agree"
    elif judged.name == "corrupt" and found in RIGHT:
        better = "the artifact is right"
    elif judged.name == "corrupt" and gave_wrong and not Exports(outcomes).gives_wrong:
        better = "the outputs are right"
    without = f"with the tags in the order {' '.join(omission.tags)}" if omission.tags else "without it"
    return f"{without} {better}" if better else ""


#: Verdicts of artifacts that are right and agree.
RIGHT = ("changed", "renamed", "new")
