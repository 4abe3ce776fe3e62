"""Judges a cell against its compact golden, as the harness judges one against a whole golden."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.artifact import Artifact, Cell, Lowered, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import rendering
from executorch_goldens.goldens.decisions import KNOWN, Decisions
from executorch_goldens.goldens.labels import OF_RUN
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import JudgedCell, diverging, made_with, passes
from executorch_goldens.judging.verdict import Acceptance, Verdict, as_known
from executorch_goldens.settings.releases import Release
from lab.compact import form, parts
from lab.compact.parts import Parts

#: Hexadecimal digits of the digests that digests in tables are over.
WHOLE = 64


def compare(
    cell: Cell,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    release: Release,
    decided: Decisions,
    of_cell: Parts = (),
) -> JudgedCell:
    """Judge the exports of a cell and compare them with its golden; None where it has none.

    Parameters
    ----------
    decided
        The decisions about cells of the release.
    of_cell
        The samples of its sheet.
    """
    try:
        if (objection := verdict.objection(cell, outcomes, decided.unchecked(cell))) is not None:
            return JudgedCell(as_known(decided, _diverging(objection, outcomes, reviewed)))
        artifact, variations = verdict.agreed(outcomes), [outcome.variation for outcome in outcomes]
        whole = rendering.render(artifact, made_with(artifact, variations, release, reviewed), WHOLE)
    except DecodeError as error:
        return JudgedCell(as_known(decided, Verdict(cell, "undecodable", str(error))))
    made = form.compact(whole, _parts(artifact, whole, of_cell))
    for defect in decided.about(KNOWN, cell):
        if isinstance(artifact.result, Lowered) and artifact.result.not_run:
            # Nothing says that it is right.
            detail = (f"{verdict.NOT_RUN} {artifact.result.not_run}",)
            return JudgedCell(Verdict(cell, defect.verdict, defect.reason, detail, known=defect.reason))
        reason = f"is right now, and known as {defect.verdict} ({defect.reason}): --update deletes that entry"
        return JudgedCell(Verdict(cell, "changed", reason, acceptance=Acceptance.POSSIBLE), made)
    if reviewed is None:
        return JudgedCell(verdict.new(cell, artifact, whole, OF_RUN), made)
    if form.equal(reviewed, made):
        return JudgedCell(Verdict(cell, "stable", ""), made)
    lines = tuple(form.differences(reviewed, made))
    names = dict.fromkeys(line.rpartition("/")[2] for line in lines if line.startswith("+++ "))
    reason = f"differs from its golden in {', '.join(names)}"
    changed = Verdict(cell, "changed", reason, lines, acceptance=Acceptance.POSSIBLE)
    return JudgedCell(_diverging(changed, outcomes, reviewed), made)


def _parts(artifact: Artifact, made: Record, of_cell: Parts) -> str:
    lowered = artifact.result
    if not of_cell or not isinstance(lowered, Lowered):
        return ""
    outlines = {
        delegate.name: payload
        for number, delegate in enumerate(lowered.delegates)
        for name, payload in made.delegates.items()
        if name.startswith(f"delegate_{number}.")
    }
    return "".join(f"{line}\n" for line in parts.lines(lowered, of_cell, outlines))


def _diverging(judged: Verdict, outcomes: Sequence[Outcome], reviewed: Record | None) -> Verdict:
    recorded = form.recorded_runs(reviewed, passes(outcomes[0])) if reviewed else None
    return diverging(judged, outcomes, reviewed, OF_RUN, recorded)
