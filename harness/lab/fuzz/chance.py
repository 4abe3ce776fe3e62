"""Chance that is the same on every machine and every Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Draws that follow from a key alone.

    Of Python's generators only ``random.Random.random`` promises the same numbers in every version ("Notes on
    Reproducibility" in the documentation of `random`), so that all draws are made from it.

    Examples
    --------
    >>> chance = Chance("drawn-7-000123")
    >>> [chance.below(10) for _ in range(8)]
    [5, 2, 6, 1, 3, 4, 1, 3]
    """

    def __init__(self, key: str) -> None:
        self._number = random.Random(key).random

    def below(self, end: int) -> int:
        """Return an integer from 0 to `end` - 1."""
        return int(self._number() * end)

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def happens(self, probability: float) -> bool:
        return self._number() < probability

    def weighted(self, weights: dict[T, float]) -> T:
        """Return a key, as often as its weight says."""
        left = self._number() * sum(weights.values())
        for choice, weight in weights.items():
            left -= weight
            if left < 0.0:
                return choice
        return choice

    def permutation(self, count: int) -> tuple[int, ...]:
        """Return the numbers below `count` in some order."""
        left = list(range(count))
        return tuple(left.pop(self.below(len(left))) for _ in range(count))
