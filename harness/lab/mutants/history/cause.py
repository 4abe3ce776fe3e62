"""The reason why a cell without a golden is wrong or not reproducible, without parts that differ between models."""

from __future__ import annotations

import re
from collections.abc import Sequence

from executorch_goldens.artifact import Artifact, Departure, Failure, Lowered, Outcome
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.words import casualties
from executorch_goldens_plugins.repro.defect import signature

#: Words of a verdict on outputs whose values are wrong.
DIFFER = re.compile(r"\b\d+ of \d+ values differ\b")


def of_verdict(judged: Verdict, outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return where a verdict on exports without a golden comes from, and one line of what is wrong there.

    The first is, of a failing stage, the stage, the pass and the function that raised; of wrong or imprecise outputs
    the operator at which they begin to be so; of disagreeing variations the pass at which these diverge.
    """
    artifact = outcomes[0].result
    result = artifact.result if isinstance(artifact, Artifact) else None
    if judged.name in ("new", "failed", "corrupt") and isinstance(result, Failure):
        return _of_failure(result)
    if judged.name == "new":
        return "", ""
    if isinstance(result, Lowered) and judged.name in ("corrupt", "imprecise"):
        return _beginning(result), _of_outputs(judged.reason)
    where = judged.divergence.name if judged.divergence is not None else ""
    # Of a crash without the name of the variation.
    lost = judged.casualty
    return where, signature(judged.reason if lost is None else casualties.reason(lost))


def _of_failure(failure: Failure) -> tuple[str, str]:
    reason = f"{failure.type.rpartition('.')[2]}: {(failure.message.splitlines() or [''])[0]}"
    function = (failure.function or "").removeprefix("executorch.")
    where = ", ".join(part for part in (failure.stage, failure.pass_name, function) if part)
    return where, signature(reason)


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
