"""Interprets an export without the blamed pass: compare LLVM's ``-opt-bisect-limit``."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.artifact import Artifact, Lowered, Omission, Outcome
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings.releases import Release


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
    better = _better(judged, gave_wrong, outcomes, reviewed, release)
    if not better:
        return ""
    return (
        f"with the tags in the order {' '.join(omission.tags)} {better}"
        if omission.tags
        else f"without it {better}"
    )


def _better(
    judged: Verdict,
    gave_wrong: bool,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    release: Release,
) -> str:
    # An export that breaks without the pass proves nothing about it.
    if len(_programs(outcomes)) < len(outcomes):
        return ""
    found = compare(judged.cell, outcomes, reviewed, release).verdict.name
    if found == "stable":
        return "the artifact equals the golden"
    if judged.name in verdict.DISAGREEING:
        return "the variations agree" if found in RIGHT else ""
    if judged.name != "corrupt":
        return ""
    if found in RIGHT:
        return "the artifact is right"
    return "the outputs are right" if gave_wrong and not Exports(outcomes).gives_wrong else ""


#: Verdicts of artifacts that are right and agree.
RIGHT = ("changed", "renamed", "new")


def _programs(outcomes: Sequence[Outcome]) -> list[Lowered]:
    made = [outcome.result.result for outcome in outcomes if isinstance(outcome.result, Artifact)]
    return [result for result in made if isinstance(result, Lowered)]
