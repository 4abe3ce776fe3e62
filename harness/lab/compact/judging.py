"""Judges a cell against its compact golden, as the harness judges one against a whole golden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from executorch_goldens.artifact import Cell, Lowered, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import rendering
from executorch_goldens.goldens.decisions import KNOWN, Decisions
from executorch_goldens.goldens.findings import Fault, Finding, Undecodable
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import JudgedCell, diverging, made_with, passes
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.verdict import Acceptance, Verdict, as_known
from executorch_goldens.settings.releases import Release
from executorch_goldens.words import findings
from lab.compact import form

#: Hexadecimal digits of the digests that digests in tables are over.
WHOLE = 64


class KnownDefect(Finding, frozen=True):
    """A cell with a known defect that was not run, or that is right now."""

    fault = Fault.NONE
    verdict: str
    why: str
    not_run: str = ""


class DiffersInTable(Finding, frozen=True):
    """Another artifact than the compact golden: the lines of their difference."""

    fault = Fault.NONE
    difference: tuple[str, ...]


@findings.lines.register
def _(found: KnownDefect, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    if found.not_run:
        yield from (found.why, f"{findings.NOT_RUN} {found.not_run}")
    else:
        yield f"is right now, and known as {found.verdict} ({found.why}): --update deletes that entry"


@findings.lines.register
def _(found: DiffersInTable, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    names = dict.fromkeys(line.rpartition("/")[2] for line in found.difference if line.startswith("+++ "))
    yield f"differs from its golden in {', '.join(names)}"
    yield from found.difference


def compare(
    cell: Cell,
    outcomes: Sequence[Outcome],
    reviewed: Record | None,
    release: Release,
    decided: Decisions,
) -> JudgedCell:
    """Judge the exports of a cell and compare them with its golden; None where it has none.

    Parameters
    ----------
    decided
        The decisions about cells of the release.
    """
    try:
        if (objection := verdict.objection(cell, outcomes, decided.unchecked(cell))) is not None:
            return JudgedCell(as_known(decided, _diverging(objection, outcomes, reviewed)))
        artifact, variations = Exports(outcomes).agreed, [outcome.variation for outcome in outcomes]
        whole = rendering.render(artifact, made_with(artifact, variations, release, reviewed), WHOLE)
    except DecodeError as error:
        return JudgedCell(as_known(decided, Verdict(cell, "undecodable", (Undecodable(str(error)),))))
    made = form.compact(whole)
    for defect in decided.about(KNOWN, cell):
        if isinstance(artifact.result, Lowered) and artifact.result.not_run:
            # Nothing says that it is right.
            found = KnownDefect(defect.verdict, defect.reason, artifact.result.not_run)
            return JudgedCell(Verdict(cell, defect.verdict, (found,), known=defect.reason))
        found = KnownDefect(defect.verdict, defect.reason)
        return JudgedCell(Verdict(cell, "changed", (found,), acceptance=Acceptance.POSSIBLE), made)
    if reviewed is None:
        return JudgedCell(verdict.new(cell, artifact, whole, OF_RUN), made)
    if form.equal(reviewed, made):
        return JudgedCell(Verdict(cell, "stable"), made)
    differs = DiffersInTable(tuple(form.differences(reviewed, made)))
    changed = Verdict(cell, "changed", (differs,), acceptance=Acceptance.POSSIBLE)
    return JudgedCell(_diverging(changed, outcomes, reviewed), made)


def _diverging(judged: Verdict, outcomes: Sequence[Outcome], reviewed: Record | None) -> Verdict:
    recorded = form.recorded_runs(reviewed, passes(outcomes[0])) if reviewed else None
    return diverging(judged, outcomes, reviewed, OF_RUN, recorded)
