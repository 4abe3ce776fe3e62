"""Diagnoses cells of a run: at once what their exports show, and after the last cell what further exports show.

Further exports are made without a blamed pass, up to the pass at which variations diverge, and with one factor changed.
That something of it fails changes neither a verdict nor the end of a run.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from executorch_goldens.artifact import Artifact, Cell, Outcome
from executorch_goldens.causes.groups import DECIDED
from executorch_goldens.goldens import golden
from executorch_goldens.judging import omission, verdict
from executorch_goldens.judging.attribution import Attribution, Follows
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.divergence import How
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.results import evidence
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.running.factors import Experiment
from executorch_goldens.running.hints import commands
from executorch_goldens.running.plan import Plan
from executorch_goldens.sweep.seconds import Seconds
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words import causes
from executorch_goldens.words.verdicts import lines
from executorch_goldens.zoo.variations import Omission, Variation

T = TypeVar("T")

#: Gets what is looked into, how many steps are done, of how many, and the seconds that they may take, and took.
Watch = Callable[[str, int, int, float, float], None]


class SpentError(Exception):
    """The seconds that a run may look for causes are over."""


@dataclass(frozen=True)
class Suspect:
    """A cell that further exports may explain.

    Attributes
    ----------
    gave_wrong
        Whether outputs of its exports are wrong.
    pair
        Two variations that disagree; empty where all agree.
    """

    judged: Verdict
    gave_wrong: bool
    pair: tuple[Variation, ...]

    @property
    def cell(self) -> Cell:
        return self.judged.cell

    @property
    def blamed(self) -> str:
        return self.judged.divergence.name if self.judged.divergence is not None else ""

    @property
    def parting(self) -> int | None:
        """The number of the pass at which the variations diverge; None where none has, or a partitioner does."""
        found = self.judged.divergence if self.pair else None
        return found.number if found is not None and found.how == How.RESULTS and found.tags is None else None

    @property
    def omission(self) -> Omission | None:
        """What an export leaves out to show whether it is the cause."""
        return self.judged.divergence.omission if self.judged.divergence is not None else None


@dataclass(frozen=True)
class Diagnosis:
    """What further exports show of a cell.

    Attributes
    ----------
    proof
        Proof by an export without the blamed pass.
    factor
        The factor that a disagreement follows.
    after
        The graph that the pass left at which variations diverge, by variation.
    """

    cell: Cell
    proof: str = ""
    factor: Attribution | None = None
    after: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Explainer:
    """Diagnostics of a run.

    Attributes
    ----------
    targets
        Exports that the templates of the run made before they served.
    seconds
        Seconds of one export of each cell.
    suspects
        The cells that are looked into after the last one.
    looking
        Diagnoses, with a line for each export that could not be made.
    left
        Lines about what there was no time for.
    """

    plan: Plan
    targets: tuple[str, ...]
    seconds: Seconds
    suspects: dict[Cell, Suspect] = field(default_factory=dict)
    looking: Diagnoses = field(default_factory=Diagnoses)
    left: list[str] = field(default_factory=list)
    _sweep: Sweep | None = None

    # At once

    def explain(self, judged: Verdict, outcomes: Exports) -> tuple[Verdict, Evidence]:
        """Return a verdict with where it begins, and the evidence for it."""
        judged = dataclasses.replace(judged, attribution=self._factor_at_once(judged, outcomes))
        return noting(
            "the evidence for its page", judged, lambda: self._evidence(judged, outcomes), Evidence()
        )

    def _factor_at_once(self, judged: Verdict, outcomes: Exports) -> Attribution | None:
        """Return the factor that needs no export: none, where all variations show the same."""
        if judged.name in verdict.AGREEING:
            alike = len(outcomes) > 1 and len(outcomes.groups) == 1
            return Attribution(Follows.CONSTANT, exports=len(outcomes)) if alike else None
        asked = self.plan.options
        if judged.name in verdict.DISAGREEING and not judged.known and asked.budget and asked.elsewhere:
            return Attribution(Follows.ELSEWHERE, why=asked.elsewhere.option)
        return None

    def _evidence(self, judged: Verdict, outcomes: Exports) -> Evidence:
        """Return the evidence that a report needs and the results do not hold."""
        found = judged.divergence if not judged.blames_case else None
        return Evidence(
            message=[*lines(judged)],
            agreeing=[list(names) for names in outcomes.names],
            commands=commands(self.plan, judged),
            diverging=causes.divergence(found, judged.labels) if found is not None else "",
            tensors=list(evidence.tensors(outcomes.groups)),
        )

    def suspect(self, judged: Verdict, outcomes: Exports) -> None:
        """Let a cell be looked into after the last one, if further exports may tell more of it."""
        asked = self.plan.options
        if judged.known or asked.elsewhere is not None or not asked.budget:
            return
        pair = pair_of(self.plan, outcomes) if judged.name in verdict.DISAGREEING else ()
        found = Suspect(judged, outcomes.gives_wrong, pair)
        if pair or found.omission is not None:
            self.suspects[judged.cell] = found

    # After the last cell

    def look(self, causes: Sequence[Sequence[Cell]], watch: Watch) -> Iterator[Diagnosis]:
        """Yield what further exports show, of one cell of each cause, then of the next, while there is time.

        Parameters
        ----------
        causes
            The cells of each, those first that matter most.
        """
        steps, started, budget = list(self._steps(causes)), time.monotonic(), self.plan.options.budget
        proven = set[int]()
        try:
            for done, step in enumerate(steps):
                if step.find == self._proof and step.cause in proven:
                    continue
                shown = self._shown(step, started, partial(watch, step.what, done, len(steps), budget))
                if shown.proof:
                    proven.add(step.cause)
                if shown != Diagnosis(step.suspect.cell):
                    yield shown
        finally:
            self._stop()

    def _steps(self, causes: Sequence[Sequence[Cell]]) -> Iterator[Probe]:
        for suspects in itertools.zip_longest(*map(self._in_order, causes)):
            several = [(cause, each) for cause, each in enumerate(suspects) if each is not None]
            for cause, each in several:
                if each.omission is not None:
                    yield Probe(cause, each, f"{each.cell} without {each.blamed}", self._proof)
            for cause, each in several:
                if each.pair:
                    yield Probe(cause, each, f"the factor that {each.cell} follows", self._factor)
            for cause, each in several:
                if each.parting is not None:
                    yield Probe(cause, each, f"the graphs of {each.cell} after {each.blamed}", self._after)

    def _in_order(self, cells: Sequence[Cell]) -> list[Suspect]:
        """Return the suspects of a cause: wrong ones first, and of these the ones that export fastest.

        The proof of one that is only different says less.
        """
        suspects = [self.suspects[cell] for cell in cells if cell in self.suspects]
        return sorted(
            suspects, key=lambda each: (each.judged.name in DECIDED, self.seconds.expected(each.cell))
        )

    def _shown(self, step: Probe, started: float, watch: Callable[[float], None]) -> Diagnosis:
        """Return what a step shows; nothing where it fails, or where the time is over."""
        budget, cell = self.plan.options.budget, step.suspect.cell

        def tick() -> None:
            took = time.monotonic() - started
            watch(took)
            if took > budget:
                raise SpentError

        def find() -> Diagnosis:
            tick()
            return step.find(step.suspect, tick)

        try:
            return self.looking.attempt(f"the result of {step.what}", find, Diagnosis(cell), (SpentError,))
        except SpentError:
            self.left.append(step.what)
            if step.find != self._factor:
                return Diagnosis(cell)
            return Diagnosis(cell, factor=Attribution(Follows.UNSOUGHT, why=f"{budget:g}"))

    def _proof(self, suspect: Suspect, tick: Callable[[], None]) -> Diagnosis:
        left_out = suspect.omission
        assert left_out is not None
        made = self._exported(
            suspect.cell, suspect.pair or self.plan.variations[:1], tick, omission=left_out, capture=0
        )
        reviewed = golden.read(golden.file_of(self.plan.root, suspect.cell))
        proof = omission.proof(
            suspect.judged, left_out, suspect.gave_wrong, made, reviewed, self.plan.release
        )
        return Diagnosis(suspect.cell, proof=proof)

    def _after(self, suspect: Suspect, tick: Callable[[], None]) -> Diagnosis:
        """Export two variations again up to the pass at which they diverge."""
        kept = {}
        for variation in suspect.pair:
            (outcome,) = self._exported(
                suspect.cell, [variation], tick, omission=None, capture=suspect.parting
            )
            if isinstance(outcome.result, Artifact) and outcome.result.watched is not None:
                kept[variation.name] = outcome.result.watched.kept
        return Diagnosis(suspect.cell, after=kept if len(kept) == len(suspect.pair) else {})

    def _factor(self, suspect: Suspect, tick: Callable[[], None]) -> Diagnosis:
        # Its templates are others, and each keeps a gigabyte.
        self._stop()
        one, other = suspect.pair
        found = Experiment(suspect.cell, one, other, self.plan.settings, self.targets, tick).run()
        # What is random looks like an order by address: both repeat where exports begin with the same memory.
        is_told = not (suspect.judged.blames_case and found.factor == "heap")
        return Diagnosis(suspect.cell, factor=found if is_told else None)

    def _exported(
        self, cell: Cell, variations: Sequence[Variation], tick: Callable[[], None], **changed: Any
    ) -> Sequence[Outcome]:
        """Export a cell with changed settings, in templates that are warm from the second time on."""
        settings = dataclasses.replace(self.plan.settings, **changed)
        try:
            if self._sweep is None:
                self._sweep = Sweep([], self.plan.variations, settings, lasting=True, targets=self.targets)
                self._sweep.start()
            return self._sweep.again(cell, variations, settings, tick)
        except BaseException:
            # What is under way is not waited for, and a sweep that failed makes nothing more.
            self._stop()
            raise

    def _stop(self) -> None:
        if self._sweep is not None:
            self._sweep.stop()
        self._sweep = None


@dataclass(frozen=True)
class Probe:
    """Exports that may tell more of a cell.

    Attributes
    ----------
    cause
        The place of its cause.
    what
        Words for what is looked into.
    find
        Makes them.
    """

    cause: int
    suspect: Suspect
    what: str
    find: Callable[[Suspect, Callable[[], None]], Diagnosis]


def with_shown(judged: Verdict, shown: Diagnosis) -> Verdict:
    """Return a verdict with what further exports show of its cell."""
    return dataclasses.replace(
        judged, attribution=shown.factor or judged.attribution, after=shown.after or judged.after
    )


def pair_of(plan: Plan, outcomes: Exports) -> tuple[Variation, ...]:
    """Return two variations that disagree."""
    by_name = {variation.name: variation for variation in plan.variations}
    return tuple(by_name[names[0]] for names in outcomes.names[:2])


def noting(what: str, judged: Verdict, find: Callable[[], T], otherwise: T) -> tuple[Verdict, T]:
    """Return the verdict with what is found beside the results; where that fails, with why there is none.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    looking = Diagnoses()
    found = looking.attempt(what, find, otherwise, (OSError,))
    return dataclasses.replace(judged, undiagnosed=(*judged.undiagnosed, *looking.failed)), found
