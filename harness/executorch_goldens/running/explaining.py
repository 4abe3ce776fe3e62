"""Looks into why a cell of a run is not as it should be, by further exports: what it follows, where it begins.

That something of it fails changes neither a verdict nor the end of a run.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.artifact import PARTITIONING, Artifact, Outcome
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.judging import attribution, omission, verdict
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.results import evidence
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.running import messages
from executorch_goldens.running.factors import Experiment
from executorch_goldens.running.plan import Plan
from executorch_goldens.settings.exports import Settings
from executorch_goldens.variations import Variation
from executorch_goldens.workers.sweep import Sweep

#: Verdicts of artifacts that are right: the proof of one that is wrong says more.
RIGHT = ("changed", "failed")
#: Cells that a pass is tried on in vain.
MOST_SILENT = 8


@dataclass
class Explainer:
    """What a run looks into, and what it has looked into so far.

    Attributes
    ----------
    settings
        Those of the run's exports.
    targets
        What the templates of the run exported before they served.
    attributed
        For how many cells the factor was sought that their disagreement follows.
    silent
        Pass to the cells that were exported again without it, which proved nothing.
    proven
        Passes with a proof, each with whether it is of a corrupt cell: the proof of one that is only different says
        less.
    """

    plan: Plan
    settings: Settings
    targets: tuple[str, ...]
    attributed: int = 0
    silent: Counter[str] = field(default_factory=Counter)
    proven: dict[str, bool] = field(default_factory=dict)

    def of(
        self, judged: Verdict, outcomes: Sequence[Outcome], reviewed: Texts | None, folder: Path
    ) -> Verdict:
        """Return a verdict with what it follows and where it begins; leave the evidence of it in `folder`.

        Raises
        ------
        OSError
            When the evidence cannot be written.
        """
        looking = Diagnoses()
        no_graphs: dict[str, str] = {}
        nowhere: tuple[str, ...] = ()
        judged = dataclasses.replace(
            judged,
            attribution=looking.of("what it follows", lambda: self._attribution(judged, outcomes), None),
            without=looking.of(
                "what it is without the pass", lambda: self._without(judged, outcomes, reviewed), ""
            ),
        )
        after = looking.of("the graphs after the pass", lambda: self._after(judged, outcomes), no_graphs)
        where = looking.of("where it diverges", lambda: tuple(_where(judged, outcomes, after)), nowhere)
        judged = dataclasses.replace(judged, detail=(*where, *looking.failed, *judged.detail))
        return noting(
            "what its page in a report shows",
            judged,
            lambda: self._evidence(judged, outcomes, after).write(folder),
        )

    def _attribution(self, judged: Verdict, outcomes: Sequence[Outcome]) -> Attribution | None:
        """Say what the verdict of a cell follows, exporting again for as many cells as were asked for."""
        if judged.name in verdict.AGREEING:
            alike = len(outcomes) > 1 and len(verdict.group_by_content(outcomes)) == 1
            return attribution.constant(len(outcomes)) if alike else None
        asked = self.plan.options
        if judged.name not in verdict.DISAGREEING or judged.known or not asked.looks_into:
            return None
        if asked.cluster is not None:
            return Attribution(
                "the factor it follows is not sought on a cluster: run the cell without --cluster"
            )
        if self.attributed >= asked.looks_into:
            return Attribution(
                f"the factor it follows was sought for {self.attributed} cells of this run, and not for this one: "
                "the command below seeks it"
            )
        self.attributed += 1
        one, other = self._pair(outcomes)
        return Experiment(judged.cell, one, other, self.settings, self.targets).run()

    def _without(self, judged: Verdict, outcomes: Sequence[Outcome], reviewed: Texts | None) -> str:
        """Export without the pass that made the difference; return what that proves, if anything.

        A pass that a cell proved nothing of is tried on the next cell that blames it, and one that was proven on a cell
        that is only different once more on a corrupt one.
        """
        found, asked = judged.divergence, self.plan.options
        if found is None or found.omission is None or judged.known or asked.cluster is not None:
            return ""
        wrong = judged.name not in RIGHT
        if self.proven.get(found.name, False) or (found.name in self.proven and not wrong):
            return ""
        tried = {*self.silent, *self.proven}
        if self.silent[found.name] >= MOST_SILENT or len({*tried, found.name}) > asked.looks_into:
            return ""
        pair = self._pair(outcomes) if judged.name in verdict.DISAGREEING else self.plan.variations[:1]
        settings = dataclasses.replace(self.settings, reuse=None, omission=found.omission)
        with Sweep([judged.cell], pair, settings, targets=self.targets) as sweep:
            made = sweep.outcomes(judged.cell)
        proof = omission.proof(judged, found.omission, outcomes, made, reviewed, self.plan.release)
        if proof:
            self.proven[found.name] = wrong
        else:
            self.silent[found.name] += 1
        return proof

    def _after(self, judged: Verdict, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """Export two variations again up to the pass at which they diverge; return the graph that it left in each."""
        found = judged.divergence
        if found is None or found.numbers is None or judged.name not in verdict.DISAGREEING:
            return {}
        if f"({PARTITIONING})" in found.line:
            return {}
        kept = {}
        for variation, number in zip(self._pair(outcomes), found.numbers, strict=True):
            settings = dataclasses.replace(self.settings, capture=number)
            with Sweep([judged.cell], [variation], settings) as sweep:
                (outcome,) = sweep.outcomes(judged.cell)
            if isinstance(outcome.result, Artifact) and outcome.result.watched is not None:
                kept[variation.name] = outcome.result.watched.kept
        return kept if len(kept) == len(found.numbers) else {}

    def _pair(self, outcomes: Sequence[Outcome]) -> list[Variation]:
        """Return two variations that disagree."""
        by_name = {variation.name: variation for variation in self.plan.variations}
        return [by_name[group[0].variation] for group in verdict.group_by_content(outcomes)[:2]]

    def _evidence(self, judged: Verdict, outcomes: Sequence[Outcome], after: Mapping[str, str]) -> Evidence:
        """Return what a report shows of a cell and its results do not hold."""
        finished = all(isinstance(outcome.result, Artifact) for outcome in outcomes)
        groups = verdict.group_by_content(outcomes) if finished else []
        return Evidence(
            message=judged.detail,
            agreeing=[[outcome.variation for outcome in group] for group in groups],
            follows=judged.attribution.line if judged.attribution is not None else "",
            commands=messages.commands(self.plan, judged),
            diverging=judged.divergence.line if judged.divergence is not None else "",
            after=after,
            tensors=list(evidence.tensors(groups)),
        )


def noting(what: str, judged: Verdict, leave: Callable[[], None]) -> Verdict:
    """Leave something beside the results; return the verdict with why there is none, where that fails.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    looking = Diagnoses()
    looking.of(what, leave, None, (OSError,))
    return dataclasses.replace(judged, detail=(*judged.detail, *looking.failed))


def _where(judged: Verdict, outcomes: Sequence[Outcome], after: Mapping[str, str]) -> Iterator[str]:
    """Yield the line that names the pass, and what it made in the variations that diverge there."""
    if judged.divergence is not None:
        yield judged.divergence.line
    elif judged.name in verdict.DISAGREEING:
        one_program = verdict.have_one_program(verdict.group_by_content(outcomes))
        made = "when the program runs" if one_program else "by serialization or emission"
        yield f"no pass diverges: what differs is made {made}"
    if judged.without:
        yield judged.without
    if judged.attribution is not None:
        yield judged.attribution.line
    if judged.divergence is not None and after:
        (one, left), (other, right) = after.items()
        name = f"graph after {judged.divergence.name}"
        yield from verdict.text_difference({name: left}, {name: right}, one, other)
