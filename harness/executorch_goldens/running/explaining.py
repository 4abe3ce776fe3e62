"""Diagnoses a cell of a run by further exports: the factor it follows, where it begins.

That something of it fails changes neither a verdict nor the end of a run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import PARTITIONING, Artifact, Outcome
from executorch_goldens.judging import attribution, verdict
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.results import evidence
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.running import messages
from executorch_goldens.running.factors import Experiment
from executorch_goldens.running.plan import Plan
from executorch_goldens.running.proving import pair_of
from executorch_goldens.settings.exports import Settings
from executorch_goldens.workers.sweep import Sweep


@dataclass
class Explainer:
    """Diagnostics of a run, and their results so far.

    Attributes
    ----------
    settings
        Those of the run's exports.
    targets
        Exports that the templates of the run made before they served.
    attributed
        For how many cells the factor was sought that their disagreement follows.
    """

    plan: Plan
    settings: Settings
    targets: tuple[str, ...]
    attributed: int = 0

    def of(self, judged: Verdict, outcomes: Sequence[Outcome], folder: Path) -> Verdict:
        """Return a verdict with its factor and where it begins; write the evidence to `folder`.

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
            attribution=looking.of(
                "the factor it follows", lambda: self._attribution(judged, outcomes), None
            ),
        )
        after = looking.of("the graphs after the pass", lambda: self._after(judged, outcomes), no_graphs)
        where = looking.of("where it diverges", lambda: tuple(_where(judged, outcomes, after)), nowhere)
        judged = dataclasses.replace(judged, detail=(*where, *looking.failed, *judged.detail))
        return noting(
            "the evidence for its page",
            judged,
            lambda: self._evidence(judged, outcomes, after).write(folder),
        )

    def _attribution(self, judged: Verdict, outcomes: Sequence[Outcome]) -> Attribution | None:
        """Return the factor that a cell's verdict follows, exporting again for as many cells as requested."""
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
        one, other = pair_of(self.plan, outcomes)
        found = Experiment(judged.cell, one, other, self.settings, self.targets).run()
        # What is random looks like an order by address: both repeat where exports begin with the same memory.
        return None if judged.blames_case and found.factor == "heap" else found

    def _after(self, judged: Verdict, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """Export two variations again up to the pass at which they diverge; return the graph that it left in each."""
        found = judged.divergence
        if found is None or found.numbers is None or judged.name not in verdict.DISAGREEING:
            return {}
        if f"({PARTITIONING})" in found.line:
            return {}
        kept = {}
        for variation, number in zip(pair_of(self.plan, outcomes), found.numbers, strict=True):
            settings = dataclasses.replace(self.settings, capture=number)
            with Sweep([judged.cell], [variation], settings) as sweep:
                (outcome,) = sweep.outcomes(judged.cell)
            if isinstance(outcome.result, Artifact) and outcome.result.watched is not None:
                kept[variation.name] = outcome.result.watched.kept
        return kept if len(kept) == len(found.numbers) else {}

    def _evidence(self, judged: Verdict, outcomes: Sequence[Outcome], after: Mapping[str, str]) -> Evidence:
        """Return the evidence that a report needs and the results do not hold."""
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
    """Yield the line that names the pass, and its results in the variations that diverge there."""
    if judged.divergence is not None and judged.divergence.line != judged.reason:
        yield judged.divergence.line
    elif judged.divergence is None and judged.name in verdict.DISAGREEING:
        one_program = verdict.have_one_program(verdict.group_by_content(outcomes))
        made = "when the program runs" if one_program else "by serialization or emission"
        yield f"no pass diverges: the difference arises {made}"
    if judged.attribution is not None:
        yield judged.attribution.line
    if judged.divergence is not None and after:
        (one, left), (other, right) = after.items()
        name = f"graph after {judged.divergence.name}"
        yield from verdict.text_difference({name: left}, {name: right}, one, other)
