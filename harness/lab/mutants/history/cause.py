"""The reason why a cell without a golden is wrong or not reproducible, without parts that differ between models."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.artifact import Artifact, Departure, Failure, Lowered, Outcome
from executorch_goldens.goldens.findings import NotFinished, WrongValues
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.words.findings import title
from executorch_goldens.words.verdicts import reason
from executorch_goldens_plugins.repro.defect import signature


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
        # The index of an output, the number of values and the distance depend on the model.
        of_values = isinstance(judged.findings[0], WrongValues)
        return _beginning(result), "values differ" if of_values else signature(reason(judged))
    where = judged.divergence.name if judged.divergence is not None else ""
    # Of a crash without the name of the variation.
    found = judged.findings[0] if judged.findings else None
    return where, signature(
        title(found, judged.cell.target) if isinstance(found, NotFinished) else reason(judged)
    )


def _of_failure(failure: Failure) -> tuple[str, str]:
    reason = f"{failure.type.rpartition('.')[2]}: {(failure.message.splitlines() or [''])[0]}"
    function = (failure.function or "").removeprefix("executorch.")
    where = ", ".join(part for part in (failure.stage, failure.pass_name, function) if part)
    return where, signature(reason)


def _beginning(lowered: Lowered) -> str:
    found = lowered.begins.where if lowered.begins is not None else ""
    if not isinstance(found, Departure):
        return signature(str(found))
    return f"{found.operator or 'an output'}{'' if found.alone else ', by what adds up'}"
