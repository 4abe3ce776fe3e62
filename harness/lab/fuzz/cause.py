"""The reason why a drawn model is wrong or not reproducible, without parts that differ between models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Artifact, Cell, Departure, Failure, Lowered, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.judging.comparison import compare, undecodable
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings.releases import Release
from executorch_goldens_plugins.repro.defect import signature

#: Verdicts that only drawn models have. ``not-run``: nothing wrong is known, but the runtime lacks something to run it.
#: ``ill-formed``: the model itself does not run; ``refused``: torch.export does not take it. Neither says anything of
#: ExecuTorch.
STABLE, NOT_RUN, ILL_FORMED, REFUSED = "stable", "not-run", "ill-formed", "refused"
#: Key under which `judge` finds that values of an output are wrong.
DIFFER = re.compile(r"\b\d+ of \d+ values differ\b")
#: Verdicts with nothing to look into. What is ``imprecise`` is right within rounding: the model is one that cannot be
#: judged.
IN_ORDER = (STABLE, NOT_RUN, ILL_FORMED, REFUSED, "imprecise")


@dataclass(frozen=True, order=True)
class Cause:
    """The common cause of failures of different models.

    Attributes
    ----------
    verdict
        As of a cell (README, "Verdicts"), or one of those above.
    where
        Of a failing stage: the stage, the pass and the function that raised. Of wrong or imprecise outputs: the
        operator at which they begin to be so. Of disagreeing variations: the pass at which these diverge.
    what
        One line, without names and numbers of the model.
    """

    verdict: str
    where: str = ""
    what: str = ""


def judge(cell: Cell, outcomes: Sequence[Outcome], release: Release) -> tuple[Cause, str]:
    """Return why `cell` is as it is, and the reason in the words of its verdict; it is judged as one without golden."""
    try:
        judged = compare(cell, outcomes, None, release).verdict
    except DecodeError as error:
        judged = undecodable(cell, error)
    return of_verdict(judged, outcomes)


def of_verdict(judged: Verdict, outcomes: Sequence[Outcome]) -> tuple[Cause, str]:
    """Return the cause of a verdict on exports without a golden, and the reason in the words of the verdict."""
    artifact = outcomes[0].result
    result = artifact.result if isinstance(artifact, Artifact) else None
    if judged.name in ("new", "failed", "corrupt") and isinstance(result, Failure):
        return _of_failure(judged.name, result)
    if judged.name == "new":
        assert isinstance(result, Lowered)
        reason = f"not run: {result.not_run}" if result.not_run else ""
        return Cause(NOT_RUN if result.not_run else STABLE), reason
    if isinstance(result, Lowered) and judged.name in ("corrupt", "imprecise"):
        return Cause(judged.name, _beginning(result), _of_outputs(judged.reason)), judged.reason
    where = judged.divergence.name if judged.divergence is not None else ""
    return Cause(judged.name, where, signature(_without_variation(judged))), judged.reason


def _of_failure(verdict: str, failure: Failure) -> tuple[Cause, str]:
    reason = f"{failure.type.rpartition('.')[2]}: {(failure.message.splitlines() or [''])[0]}"
    name = {"model": ILL_FORMED, "export": REFUSED, "run": "corrupt"}.get(failure.stage, "failed")
    function = (failure.function or "").removeprefix("executorch.")
    where = ", ".join(part for part in (failure.stage, failure.pass_name, function) if part)
    return Cause(name, where, signature(reason)), reason


def _of_outputs(reason: str) -> str:
    """Return the defect of outputs; their index, the number of values and the distance depend on the model.

    >>> _of_outputs("output 0 float32[1, 2]: 20 of 40 values differ, max 0.75 (tolerance 0.006)")
    'values differ'
    """
    return "values differ" if DIFFER.search(reason) else signature(reason)


def _beginning(lowered: Lowered) -> str:
    found = lowered.begins.where if lowered.begins is not None else ""
    if not isinstance(found, Departure):
        return signature(str(found))
    return f"{found.operator or 'an output'}{'' if found.alone else ', by what adds up'}"


def _without_variation(judged: Verdict) -> str:
    """Return the reason of a verdict without the name of the variation that a crash was of."""
    name, colon, rest = judged.reason.partition(": ")
    return rest if colon and name.startswith("seed") else judged.reason
