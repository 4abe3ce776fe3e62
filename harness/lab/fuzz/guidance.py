"""Chooses which models are drawn, by the branches of a release's sources that the models before them took.

About half are drawn as they always are. The others change a model that took a branch which neither a cell nor a model
before it took. Choices follow from the seed, from what cells take, and from what the models before took: the same
sources and the same of these give the same names, and a name always means the same model.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator

from lab.branches.sources import Branch
from lab.fuzz.chance import Chance
from lab.fuzz.names import MOST_CHANGES, changed, changes, drawn, name

#: Models that are chosen at a time, without what the others of them take.
GENERATION = 25
#: Part of the models that change an earlier one, once there is one that is worth it.
CHANGING = 0.5


class Guide:
    """Chooses models.

    Parameters
    ----------
    seed
        Of the names.
    known
        Branches already covered.
    taken
        Returns the branches that the exports of a model took.
    """

    def __init__(
        self, seed: int, known: Collection[Branch], taken: Callable[[str], Collection[Branch]]
    ) -> None:
        self.seed = seed
        self.taken = taken
        self.seen = set(known)
        #: Models that took a branch which was not seen before, and may be changed once more.
        self.worthwhile: list[str] = []

    def names(self, numbers: Iterable[int]) -> Iterator[str]:
        """Yield a name for each number; all of a generation are exported before the next is asked for."""
        left = iter(numbers)
        while generation := [self._choose(number) for number in itertools.islice(left, GENERATION)]:
            yield from generation
            for model in generation:
                self._learn(model)

    def _choose(self, number: int) -> str:
        chance = Chance(f"guide-{self.seed}-{number}")
        if self.worthwhile and chance.happens(CHANGING):
            model = chance.one(self.worthwhile)
            # Some changes change nothing that is used.
            if drawn(changed(model, number)) != drawn(model):
                return changed(model, number)
        return name(self.seed, number)

    def _learn(self, model: str) -> None:
        news = set(self.taken(model)) - self.seen
        self.seen |= news
        if news and changes(model) < MOST_CHANGES:
            self.worthwhile.append(model)


def digest(known: Collection[Branch]) -> str:
    """Return a digest of branches already covered."""
    text = "\n".join(f"{each.file}:{each.start}:{each.end}" for each in sorted(known))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
