"""Finds the factor that a disagreement follows: the cell is exported again with one factor changed, then with two."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from executorch_goldens.artifact import Artifact, Casualty, Cell, Outcome
from executorch_goldens.judging.attribution import Attribution, Follows
from executorch_goldens.judging.exports import Exports
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.folder import Folder
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.zoo.variations import FACTORS, SURROUNDINGS, TOGETHER, Variation

#: Exports that begin with the same memory. A time or a random number makes them differ; an order by address does not.
TWINS = 3

#: Number of repetitions under the first variation: the memory differs each time.
REPEATS = 3


class _LostError(Exception):
    """An export did not finish; the message names it."""


@dataclass
class Experiment:
    """Exports of one cell between two variations that disagree.

    All of them are made in one directory, one after the other, unless the directory is what is changed.

    Attributes
    ----------
    cell
        The cell.
    one, other
        The variations; `one` with some factors of `other` are those that are exported.
    settings
        Settings of the run; nothing is taken from the store, and nothing put there.
    targets
        Exports that the templates of the run made before they served.
    tick
        Called while exports are waited for; what it raises ends them.
    exports
        Number of exports made.
    """

    cell: Cell
    one: Variation
    other: Variation
    settings: Settings
    targets: Sequence[str]
    tick: Callable[[], None] = lambda: None
    exports: int = field(default=0, init=False)

    def run(self) -> Attribution:
        """Export as often as it takes, 32 times at most."""
        with Folder.make() as made:
            folder = made.path.resolve()
            self.one, self.other = self.one.within(folder / "here"), self.other.within(folder / "elsewhere")
            try:
                return self._attribution()
            except (_LostError, SweepError) as error:
                return Attribution(Follows.LOST, why=str(error).splitlines()[0])

    def _attribution(self) -> Attribution:
        known = [
            name for name, field in FACTORS.items() if getattr(self.one, field) != getattr(self.other, field)
        ]
        name = replace(self.one, directory=None).name
        reference, *repeats = self._repeated()
        if not all(map(_twins_agree, (reference, *repeats))):
            return Attribution(Follows.NOTHING, variation=name)
        again, every, *changed = self._exported([self.one, *map(self._with, [known, *([k] for k in known)])])
        if not all(same(reference, outcome) for outcome in (*repeats, again)):
            return Attribution(Follows.ADDRESS, variation=name)
        outcomes = dict(zip(known, changed, strict=True))
        if followed := [factor for factor in known if not same(reference, outcomes[factor])]:
            followed, known = self._single(reference, followed, known)
            return Attribution(Follows.ALONE, tuple((name,) for name in followed), tuple(known))
        if same(reference, every):
            return Attribution(Follows.GONE, exports=self.exports)
        pairs = list(itertools.combinations(known, 2))
        of_pairs = zip(pairs, self._exported([self._with(pair) for pair in pairs]), strict=True)
        found = tuple(pair for pair, outcome in of_pairs if not same(reference, outcome))
        return Attribution(Follows.TOGETHER if found else Follows.SEVERAL, found, tuple(known))

    def _single(
        self, reference: Outcome, followed: list[str], known: list[str]
    ) -> tuple[list[str], list[str]]:
        """Return the factors to test and those known, with single surroundings where one alone decides."""
        if TOGETHER not in followed:
            return followed, known
        changed = [
            name
            for name in SURROUNDINGS
            if (name in self.one.changed_surroundings) != (name in self.other.changed_surroundings)
        ]
        exported = self._exported([self._with([name]) for name in changed])
        single = [name for name, made in zip(changed, exported, strict=True) if not same(reference, made)]
        if not single:
            return followed, known
        return (
            [*(name for name in followed if name != TOGETHER), *single],
            [*(name for name in known if name != TOGETHER), *changed],
        )

    def _with(self, factors: Sequence[str]) -> Variation:
        return self.one.taking(factors, self.other)

    def _repeated(self) -> list[Outcome]:
        """Export under the first variation, each time in processes that begin with the same memory."""
        with self._sweep([self.one], lasting=True, twins=TWINS) as sweep:
            outcomes = [*sweep.outcomes(self.cell, tick=self.tick)]
            for _ in range(REPEATS - 1):
                outcomes += sweep.again(self.cell, [self.one], tick=self.tick)
        return self._whole(outcomes)

    def _exported(self, variations: Sequence[Variation]) -> list[Outcome]:
        with self._sweep(variations) as sweep:
            return self._whole(sweep.outcomes(self.cell, tick=self.tick))

    def _sweep(self, variations: Sequence[Variation], lasting: bool = False, twins: int = 0) -> Sweep:
        # All twins are made within the limit of one export.
        limit = self.settings.limit * max(1, twins)
        settings = replace(self.settings, twins=twins, limit=limit)
        return Sweep([self.cell], variations, settings, lasting=lasting, targets=self.targets)

    def _whole(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        for outcome in outcomes:
            if isinstance(outcome.result, Casualty):
                raise _LostError(f"an export under {outcome.variation} {outcome.result.verdict}")
            self.exports += 1 + len(outcome.result.twins)
        return [*outcomes]


def _twins_agree(outcome: Outcome) -> bool:
    assert isinstance(outcome.result, Artifact)
    return all(same(outcome, replace(outcome, result=twin)) for twin in outcome.result.twins)


def same(one: Outcome, other: Outcome) -> bool:
    """Return whether two exports of one cell have the same content."""
    both = isinstance(one.result, Artifact) and isinstance(other.result, Artifact)
    return both and len(Exports([one, other]).groups) == 1
