"""Exports cells again without the blamed pass, once a run knows its causes: one proof for each.

That something of it fails changes neither a verdict nor the end of a run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.goldens import golden
from executorch_goldens.judging import omission, verdict
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.review.groups import DECIDED
from executorch_goldens.running.plan import Plan
from executorch_goldens.settings.exports import Settings
from executorch_goldens.variations import Variation
from executorch_goldens.workers.seconds import Seconds
from executorch_goldens.workers.sweep import Sweep

#: Causes that are looked into, and cells of each that prove nothing, unless all were asked for.
MOST_CAUSES = 10
MOST_SILENT = 4


@dataclass(frozen=True)
class Suspect:
    """A cell that blames a pass.

    Attributes
    ----------
    gave_wrong
        Whether outputs of its exports are wrong.
    pair
        The variations that it is exported under again: two where they disagree.
    """

    judged: Verdict
    gave_wrong: bool
    pair: tuple[Variation, ...]


@dataclass
class Prover:
    """The cells of a run that blame a pass which an export can be made without.

    Attributes
    ----------
    targets
        Exports that the templates of the run made before they served.
    seconds
        Of one export of each cell.
    looking
        Has a line for each cell that could not be exported again.
    """

    plan: Plan
    settings: Settings
    targets: tuple[str, ...]
    seconds: Seconds
    suspects: dict[Cell, Suspect] = field(default_factory=dict)
    looking: Diagnoses = field(default_factory=Diagnoses)

    def add(self, judged: Verdict, outcomes: Sequence[Outcome]) -> None:
        """Add a cell, if an export without the blamed pass may prove something."""
        found, asked = judged.divergence, self.plan.options
        if found is None or found.omission is None or judged.known or asked.cluster is not None:
            return
        if asked.looks_into:
            pair = pair_of(self.plan, outcomes) if judged.name in verdict.DISAGREEING else ()
            pair = pair or self.plan.variations[:1]
            self.suspects[judged.cell] = Suspect(judged, omission.gives_wrong(outcomes), tuple(pair))

    def proofs(self, causes: Sequence[Sequence[Cell]], says: Callable[[str], None]) -> dict[Cell, str]:
        """Return the proof of each cause, by the cell that shows it.

        Cells that are wrong are tried first, and of these the ones that export fastest: the proof of one that is only
        different says less.

        Parameters
        ----------
        causes
            The cells of each, those first that matter most.
        says
            Gets a line for each export.
        """
        asked_all = self.plan.options.explain == "all"
        found: dict[Cell, str] = {}
        of_suspects = [each for cells in causes if (each := self._in_order(cells))]
        for suspects in of_suspects[: None if asked_all else MOST_CAUSES]:
            for suspect in suspects[: None if asked_all else MOST_SILENT]:
                if proof := self._proof(suspect, says):
                    found[suspect.judged.cell] = proof
                    break
        return found

    def _in_order(self, cells: Sequence[Cell]) -> list[Suspect]:
        suspects = [self.suspects[cell] for cell in cells if cell in self.suspects]
        return sorted(
            suspects, key=lambda each: (each.judged.name in DECIDED, self.seconds.of(each.judged.cell))
        )

    def _proof(self, suspect: Suspect, says: Callable[[str], None]) -> str:
        """Return what an export without the pass proves; empty if nothing, or if it fails."""
        judged = suspect.judged
        assert judged.divergence is not None
        assert judged.divergence.omission is not None
        left_out = judged.divergence.omission
        what = f"{judged.cell} without {judged.divergence.name}"
        says(what)

        def find() -> str:
            settings = dataclasses.replace(self.settings, reuse=None, omission=left_out)
            with Sweep([judged.cell], suspect.pair, settings, targets=self.targets) as sweep:
                made = sweep.outcomes(judged.cell)
            reviewed = golden.read(golden.directory(self.plan.root, judged.cell))
            return omission.proof(judged, left_out, suspect.gave_wrong, made, reviewed, self.plan.release)

        return self.looking.of(f"the result of {what}", find, "")


def pair_of(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[Variation, ...]:
    """Return two variations that disagree."""
    by_name = {variation.name: variation for variation in plan.variations}
    return tuple(by_name[group[0].variation] for group in verdict.group_by_content(outcomes)[:2])
