"""Compares a cell's exports with its golden: the verdict, and the pass that made the difference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from executorch_goldens.artifact import EXPORTED, STAGE, Artifact, Cell, Failure, Lowered, Outcome, PassRun
from executorch_goldens.decode import DecodeError
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.likeness import RENAMED
from executorch_goldens.goldens import equality, findings, golden, rendering
from executorch_goldens.goldens.decisions import FILE, KNOWN, NONE, Decisions
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.quantities import over
from executorch_goldens.goldens.record import DELEGATE, MODEL, TRACE, Record
from executorch_goldens.judging import divergence, rightness, verdict
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.divergence import How
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.verdict import Acceptance, Verdict, as_known
from executorch_goldens.settings.releases import Release
from executorch_goldens.zoo.registry import SAMPLE_NAMES

#: Differences from its golden that a repository may allow: ``allow`` of [tool.goldens].
RENAMES = "renames"


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
    difference
        Of `reviewed` and `record`, where they were compared.
    """

    verdict: Verdict
    record: Record | None = None
    reviewed: Record | None = None
    confirmed: bool = False
    lacking: bool = False
    difference: Difference | None = None

    def with_verdict(self, **changes: Any) -> JudgedCell:
        """Return it with other fields of its verdict."""
        return dataclasses.replace(self, verdict=dataclasses.replace(self.verdict, **changes))


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
    outcomes = Exports(outcomes)
    objection = verdict.objection(cell, outcomes, decided.unchecked(cell) if accepted is None else accepted)
    made = Record({}, {})
    if objection is None:
        artifact = outcomes.agreed
        variations = [outcome.variation for outcome in outcomes]
        made = rendering.render(artifact, made_with(artifact, variations, release, reviewed))
        objection = _over_budget(cell, made, decided)
    if objection is not None:
        return JudgedCell(as_known(decided, diverging(objection, outcomes, reviewed, labels)))
    for defect in decided.about(KNOWN, cell):
        if isinstance(artifact.result, Lowered) and artifact.result.not_run:
            # Nothing says that it is right.
            not_run = findings.NotRun(defect.reason, artifact.result.not_run)
            return JudgedCell(Verdict(cell, defect.verdict, (not_run,), known=defect.reason))
        right = findings.RightNow(str(decided.root / FILE), defect.verdict, defect.reason)
        return JudgedCell(Verdict(cell, "changed", (right,)))
    if reviewed is None:
        return JudgedCell(verdict.new(cell, artifact, made, labels), made)
    difference = Difference(reviewed, made, labels)
    if difference.equal:
        return JudgedCell(Verdict(cell, "stable"), made, difference=difference)
    failure = artifact.result if isinstance(artifact.result, Failure) else None
    refusals = artifact.watched.refusals if artifact.watched else ()
    judged = verdict.changed(cell, difference, failure, refusals)
    if judged.name == RENAMED and RENAMES in allow:
        # The golden stays, and with it the names that people have reviewed.
        return JudgedCell(dataclasses.replace(judged, acceptance=Acceptance.ALLOWED), reviewed)
    judged = diverging(judged, outcomes, reviewed, labels, difference=difference)
    return JudgedCell(judged, made, difference=difference)


def _over_budget(cell: Cell, made: Record, decided: Decisions) -> Verdict | None:
    exceeded = tuple(over(made, decided.budgets(cell)))
    found = findings.OverBudget(exceeded, str(decided.root / FILE))
    return Verdict(cell, "over-budget", (found,)) if exceeded else None


def damaged(cell: Cell, error: golden.GoldenError) -> Verdict:
    """Report that the golden of `cell` cannot be used; one that a merge left may be recorded again."""
    merged = isinstance(error, golden.ConflictError)
    acceptance = Acceptance.POSSIBLE if merged else Acceptance.IMPOSSIBLE
    return Verdict(cell, "damaged-golden", (findings.DamagedGolden(str(error)),), acceptance=acceptance)


def undecodable(cell: Cell, error: DecodeError, decided: Decisions = NONE) -> Verdict:
    """Report that a payload of `cell` does not match the schema of its release."""
    return as_known(decided, Verdict(cell, "undecodable", (findings.Undecodable(str(error)),)))


def diverging(
    judged: Verdict,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    labels: Labels,
    difference: Difference | None = None,
) -> Verdict:
    """Return a verdict with where its artifact went wrong; a golden whose trace is damaged is damaged.

    Parameters
    ----------
    difference
        Of `reviewed` and the artifact, where they were compared.
    """
    diagnoses = Diagnoses()
    found = diagnoses.attempt(
        "the pass that made the difference",
        lambda: _divergence(judged, outcomes, reviewed, difference),
        None,
        (golden.GoldenError,),
    )
    if judged.name in verdict.DISAGREEING and (unsteady := _unsteady(outcomes)) is not None:
        # How the programs of two models differ explains nothing.
        found = divergence.Divergence(MODEL, How.WEIGHTS, weights=unsteady.weights)
        judged = dataclasses.replace(judged, findings=(unsteady,), difference=None)
    made = outcomes[0].program
    delegates = tuple(each.backend_id for each in made.delegates) if made is not None else None
    return dataclasses.replace(
        judged,
        divergence=found,
        undiagnosed=(*judged.undiagnosed, *diagnoses.failed),
        delegates=delegates,
        labels=labels,
        is_traced=reviewed is not None,
    )


def _unsteady(outcomes: Sequence[Outcome]) -> findings.UnsteadyCase | None:
    """Return that a case gives two variations different models; None where it does not, or that is not known.

    The weights of a build's modules are recorded. Any other model is another one where the graph that is exported,
    which has its weights, differs, and eager's outputs do.
    """
    exports = Exports(outcomes)
    one, other = (group[0] for group in exports.groups[:2])
    programs = [each.program for each in (one, other) if each.program is not None]
    if len(programs) < 2:
        return None
    if names := equality.changed_weights(*map(rendering.model_of, programs)):
        return findings.UnsteadyCase(exports.names, tuple(names))
    first, second = (next(iter(passes(each)), None) for each in (one, other))
    is_first = first is not None and (first.pipeline, first.name) == (STAGE, EXPORTED)
    expected = [[sample.expected for sample in each.samples] for each in programs]
    if is_first and first != second and expected[0] != expected[1]:
        return findings.UnsteadyCase(exports.names)
    return None


def _divergence(
    judged: Verdict,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    difference: Difference | None,
) -> divergence.Divergence | None:
    """Return the pass at which an artifact went wrong; None where no pass is known.

    Where variations disagree it is the first at which two of them diverge; else the first whose result is not the one
    in the golden's trace.
    """
    recorded = reviewed.trace if reviewed is not None and TRACE in reviewed.sections else None
    if judged.name in verdict.DISAGREEING:
        one, other = (group[0] for group in Exports(outcomes).groups[:2])
        return divergence.divergence(passes(one), passes(other), recorded or ())
    artifact = outcomes[0].result
    if not isinstance(artifact, Artifact):
        return None
    result = artifact.result
    if (altered := rightness.alteration(judged.findings)) and altered.writer:
        return divergence.Divergence(altered.writer, How.WRITER)
    if reviewed is None:
        return None
    if isinstance(result, Lowered) and (
        names := equality.changed_weights(reviewed.sections.get(MODEL, ""), rendering.model_of(result))
    ):
        # No pass made the difference, whichever is the first that shows it.
        return divergence.Divergence(MODEL, How.WEIGHTS, weights=tuple(names))
    if recorded is None:
        return None
    found = _from_golden(result, passes(outcomes[0]), recorded, reviewed)
    made = result.made if isinstance(result, Failure) else result
    if found is None or made is None or not found.name.startswith(DELEGATE):
        return found
    difference = difference or Difference(reviewed, verdict.delegates_of(made))
    return dataclasses.replace(found, change=verdict.payload_difference(found.name, difference))


def _from_golden(
    result: Lowered | Failure,
    runs: Sequence[PassRun],
    recorded: Sequence[PassRun],
    reviewed: Record,
) -> divergence.Divergence | None:
    """Return the first pass whose result is not the one in the golden's trace."""
    end = result.pass_name or result.function if isinstance(result, Failure) else None
    if tuple(equality.digests(reviewed)) != (rendering.here(),):
        # Payloads of equal content have other bytes there.
        recorded, runs = ([run for run in each if not equality.makes_bytes(run)] for each in (recorded, runs))
    return divergence.divergence_from_golden(recorded, runs, end)


def passes(outcome: Outcome) -> tuple[PassRun, ...]:
    """Return the runs that an export noted; none if it did not finish."""
    artifact = outcome.result
    return artifact.watched.passes if isinstance(artifact, Artifact) and artifact.watched else ()


def made_with(
    artifact: Artifact, variations: Sequence[str], release: Release, reviewed: Record | None = None
) -> rendering.MadeWith:
    """Return how an artifact was made by the variations named, where `reviewed` is the golden that it has."""
    before = reviewed.numerics if reviewed is not None else None
    numerics = numerics_of(artifact, before.power if before is not None else None)
    return rendering.MadeWith(stack=release.stack(), variations=variations, numerics=numerics)


#: Less than a unit in the last place of float32 says nothing.
LEAST = -24


def numerics_of(artifact: Artifact, before: int | None = None) -> Numerics:
    """Return the checks of an artifact beyond its reproducibility.

    The tolerance is rounded up to a power of two. It stays what it was `before`, if it is the next to that: on another
    machine a value near a tie may be rounded the other way while the spread is measured.
    """
    lowered = artifact.result
    if not isinstance(lowered, Lowered):
        return Numerics(fails=True)
    if lowered.not_run:
        return Numerics(not_run=lowered.not_run)
    most = max((moved for *_, moved in lowered.imprecisions()), default=0.0)
    power = None
    if most:
        power = max(LEAST, math.ceil(math.log2(most))) if math.isfinite(most) else 0
        if before is not None and abs(power - before) <= 1:
            power = before
    unjudged: dict[str, tuple[str, ...]] = {}
    for name, why in lowered.unjudged:
        unjudged[why] = (*unjudged.get(why, ()), name)
    return Numerics(
        power,
        bool(lowered.codes) and rightness.only_holds(lowered),
        lowered.in_eager,
        tuple(sample.name for sample in lowered.samples if sample.name not in SAMPLE_NAMES),
        tuple(unjudged.items()),
    )
