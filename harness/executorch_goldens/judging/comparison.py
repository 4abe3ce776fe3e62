"""Compares a cell's exports with its golden: the verdict, and the pass that made the difference."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import EXPORTED, STAGE, Artifact, Cell, Failure, Lowered, Outcome, PassRun
from executorch_goldens.decode import DecodeError
from executorch_goldens.diff import equality
from executorch_goldens.diff.likeness import RENAMED
from executorch_goldens.errors import some
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.goldens.accuracy import EQUAL
from executorch_goldens.goldens.decisions import FILE, KNOWN, NONE, Decisions
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.quantities import over
from executorch_goldens.goldens.record import MODEL, TRACE, Record
from executorch_goldens.judging import divergence, rightness, verdict
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.verdict import Acceptance, Verdict, as_known
from executorch_goldens.settings.config import RENAMES
from executorch_goldens.settings.releases import Release
from executorch_goldens.zoo.registry import SAMPLE_NAMES


@dataclass(frozen=True)
class JudgedCell:
    """A judged cell, and the golden written for it.

    Attributes
    ----------
    record
        The golden that the cell would get: of the artifact that all variations agree on, where it is right; otherwise
        None. Where what differs is allowed, the golden as it is.
    reviewed
        Its golden; None where it has none that can be used.
    confirmed
        Whether its golden now says more of how it is made than before.
    lacking
        Whether its golden lacks what goldens recorded today have.
    """

    verdict: Verdict
    record: Record | None = None
    reviewed: Record | None = None
    confirmed: bool = False
    lacking: bool = False


def compare(
    cell: Cell,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    release: Release,
    decided: Decisions = NONE,
    allow: Collection[str] = (),
    labels: Labels = OF_RUN,
    accepted: Collection[str] | None = None,
) -> JudgedCell:
    """Judge the exports of `cell` and compare them with `reviewed`, its golden; None where it has none.

    Parameters
    ----------
    labels
        Names of `reviewed` and the artifact in messages.
    accepted
        What nothing checks, and is accepted; what `decided` has of the cell by default.

    Raises
    ------
    DecodeError
        When a payload is not what its format's schema says.
    """
    objection = verdict.objection(cell, outcomes, decided.unchecked(cell) if accepted is None else accepted)
    made = Record({}, {})
    if objection is None:
        artifact = verdict.agreed(outcomes)
        variations = [outcome.variation for outcome in outcomes]
        made = rendering.render(artifact, made_with(artifact, variations, release, reviewed))
        objection = _over_budget(cell, made, decided)
    if objection is not None:
        return JudgedCell(as_known(decided, diverging(objection, outcomes, reviewed, labels)))
    for defect in decided.about(KNOWN, cell):
        if isinstance(artifact.result, Lowered) and artifact.result.not_run:
            # Nothing says that it is right.
            detail = (f"{verdict.NOT_RUN} {artifact.result.not_run}",)
            return JudgedCell(Verdict(cell, defect.verdict, defect.reason, detail, known=defect.reason))
        known_as = f"{decided.root / FILE} knows it as {defect.verdict} ({defect.reason})"
        return JudgedCell(Verdict(cell, "changed", f"is right now, but {known_as}: delete it there"))
    if reviewed is None:
        return JudgedCell(verdict.new(cell, artifact, made, labels), made)
    if equality.equal(reviewed, made):
        return JudgedCell(Verdict(cell, "stable", ""), made)
    refusals = artifact.watched.refusals if artifact.watched else ()
    judged = verdict.changed(cell, reviewed, made, refusals, labels)
    if judged.name == RENAMED and RENAMES in allow:
        # The golden stays, and with it the names that people have reviewed.
        return JudgedCell(dataclasses.replace(judged, acceptance=Acceptance.ALLOWED), reviewed)
    return JudgedCell(diverging(judged, outcomes, reviewed, labels), made)


def _over_budget(cell: Cell, made: Record, decided: Decisions) -> Verdict | None:
    lines = list(over(made, decided.budgets(cell)))
    if not lines:
        return None
    way_out = f"if the program is worth it: a higher number in {decided.root / FILE}"
    return Verdict(cell, "over-budget", lines[0], (*lines[1:], way_out))


def damaged(cell: Cell, error: golden.GoldenError) -> Verdict:
    """Report that the golden of `cell` cannot be used; one that a merge left may be recorded again."""
    merged = isinstance(error, golden.ConflictError)
    acceptance = Acceptance.POSSIBLE if merged else Acceptance.IMPOSSIBLE
    return Verdict(cell, "damaged-golden", str(error), acceptance=acceptance)


def undecodable(cell: Cell, error: DecodeError, decided: Decisions = NONE) -> Verdict:
    """Report that a payload of `cell` does not match the schema of its release."""
    return as_known(decided, Verdict(cell, "undecodable", str(error)))


def diverging(
    judged: Verdict,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    labels: Labels,
    recorded: Sequence[PassRun] | None = None,
) -> Verdict:
    """Return a verdict with where its artifact went wrong; a golden whose trace is damaged is damaged.

    Parameters
    ----------
    recorded
        The runs that changed the graph when the golden was recorded, where its trace does not say.
    """
    diagnoses = Diagnoses()
    found = diagnoses.attempt(
        "the pass that made the difference",
        lambda: _divergence(judged, outcomes, reviewed, labels, recorded),
        None,
        (golden.GoldenError,),
    )
    if found is not None and judged.name in verdict.DISAGREEING and found.name == MODEL:
        # How the programs of two models differ explains nothing.
        judged = dataclasses.replace(judged, reason=found.line, detail=(*judged.detail[:1], STEADY))
    if judged.name == "corrupt" and reviewed is None and found is None:
        judged = dataclasses.replace(judged, detail=(*judged.detail, UNTRACED))
    made = outcomes[0].result.result if isinstance(outcomes[0].result, Artifact) else None
    delegates = tuple(each.backend_id for each in made.delegates) if isinstance(made, Lowered) else None
    detail = (*diagnoses.failed, *judged.detail)
    return dataclasses.replace(judged, divergence=found, detail=detail, delegates=delegates)


#: Detail of a wrong program without a golden.
UNTRACED = "no pass is named: there is no golden whose passes its passes could be compared with"
#: The way out for a case that is another model each time.
STEADY = "give it the same each time: draw from `data`, or after torch.manual_seed"


def _unsteady(one: Outcome, other: Outcome) -> str:
    """Return that a case gives two variations different models; empty where it does not, or that is not known.

    The weights of a build's modules are recorded. Any other model is another one where the graph that is exported,
    which has its weights, differs, and eager's outputs do.
    """
    made = [each.result.result for each in (one, other) if isinstance(each.result, Artifact)]
    programs = [each for each in made if isinstance(each, Lowered)]
    if len(programs) < 2:
        return ""
    if names := equality.changed_weights(*map(rendering.model_of, programs)):
        return f"the case is the cause: its weights differ before anything is lowered ({some(names)})"
    first, second = (next(iter(passes(each)), None) for each in (one, other))
    is_first = first is not None and (first.pipeline, first.name) == (STAGE, EXPORTED)
    expected = [[sample.expected for sample in each.samples] for each in programs]
    if is_first and first != second and expected[0] != expected[1]:
        return "the case is the cause: its model differs before anything is lowered, and eager gives other outputs"
    return ""


def _divergence(
    judged: Verdict,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    labels: Labels,
    recorded: Sequence[PassRun] | None,
) -> divergence.Divergence | None:
    """Return the pass at which an artifact went wrong; None where no pass is known.

    Where variations disagree it is the first at which two of them diverge; else the first whose result is not the one
    in the golden's trace.
    """
    if reviewed is not None and TRACE in reviewed.sections:
        recorded = reviewed.trace
    if judged.name in verdict.DISAGREEING:
        one, other = (group[0] for group in verdict.group_by_content(outcomes)[:2])
        if line := _unsteady(one, other):
            return divergence.Divergence(line, MODEL)
        return divergence.divergence(passes(one), passes(other), recorded or ())
    artifact = outcomes[0].result
    if not isinstance(artifact, Artifact):
        return None
    result = artifact.result
    if isinstance(result, Lowered) and (altered := rightness.alteration(result)) and altered.writer:
        line = f"pass that changed the model that it was given: {altered.writer}"
        return divergence.Divergence(line, altered.writer)
    if reviewed is None:
        return None
    if isinstance(result, Lowered) and (
        names := equality.changed_weights(reviewed.sections.get(MODEL, ""), rendering.model_of(result))
    ):
        # No pass made the difference, whichever is the first that shows it.
        return divergence.Divergence(equality.weights_named(names, labels), MODEL)
    if recorded is None:
        return None
    found = _from_golden(result, passes(outcomes[0]), recorded, reviewed, labels)
    made = result.made if isinstance(result, Failure) else result
    change = verdict.payload_difference(found.name, reviewed, made) if found and made else ""
    return dataclasses.replace(found, line=f"{found.line}: {change}") if found and change else found


def _from_golden(
    result: Lowered | Failure,
    runs: Sequence[PassRun],
    recorded: Sequence[PassRun],
    reviewed: Record,
    labels: Labels,
) -> divergence.Divergence | None:
    """Return the first pass whose result is not the one in the golden's trace."""
    end = result.pass_name or result.function if isinstance(result, Failure) else None
    if tuple(equality.digests(reviewed)) != (rendering.here(),):
        # Payloads of equal content have other bytes there.
        recorded, runs = ([run for run in each if not equality.makes_bytes(run)] for each in (recorded, runs))
    return divergence.divergence_from_golden(recorded, runs, end, labels)


def passes(outcome: Outcome) -> tuple[PassRun, ...]:
    """Return the runs that an export noted; none if it did not finish."""
    artifact = outcome.result
    return artifact.watched.passes if isinstance(artifact, Artifact) and artifact.watched else ()


def made_with(
    artifact: Artifact, variations: Sequence[str], release: Release, reviewed: Record | None = None
) -> rendering.MadeWith:
    """Return how an artifact was made by the variations named, where `reviewed` is the golden that it has."""
    before = WITHIN.search(reviewed.facts["numerics"]) if reviewed is not None else None
    numerics = numerics_line(artifact, int(before[1]) if before is not None else None)
    return rendering.MadeWith(stack=release.stack(), variations=variations, numerics=numerics)


#: Less than a unit in the last place of float32 says nothing.
LEAST = -24
#: The tolerance in a golden, a power of two.
WITHIN = re.compile(r"within 2\^(-?\d+) of")


def numerics_line(artifact: Artifact, before: int | None = None) -> str:
    """Return one line with the checks of an artifact beyond its reproducibility.

    The tolerance is rounded up to a power of two. It stays what it was `before`, if it is the next to that: on another
    machine a value near a tie may be rounded the other way while the spread is measured.
    """
    lowered = artifact.result
    if not isinstance(lowered, Lowered):
        return "none: lowering fails"
    if lowered.not_run:
        return f"{verdict.NOT_RUN} {lowered.not_run}"
    most = max(
        (
            lowered.imprecision(sample, index)
            for sample in lowered.samples
            for index in range(len(sample.expected))
        ),
        default=0.0,
    )
    within = EQUAL
    if most:
        power = max(LEAST, math.ceil(math.log2(most))) if math.isfinite(most) else 0
        if before is not None and abs(power - before) <= 1:
            power = before
        within = f"within 2^{power} of the largest value"
    constants = "; folded constants equal" if lowered.codes and rightness.only_holds(lowered) else ""
    names: dict[str, list[str]] = {}
    for name, why in lowered.unjudged:
        names.setdefault(why, []).append(name)
    unjudged = "".join(f"; not judged on {', '.join(left_out)}: {why}" for why, left_out in names.items())
    recorded = [sample.name for sample in lowered.samples if sample.name not in SAMPLE_NAMES]
    also = f"; recorded: {', '.join(recorded)}" if recorded else ""
    in_eager = f"; with eager in place of {', '.join(lowered.in_eager)}" if lowered.in_eager else ""
    return f"outputs against eager {within}{constants}{in_eager}{also}{unjudged}"
