"""Deals batches to workers so that as few workers as possible start a template for the same variation."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

#: Batches that a worker has at a time: one that it exports, and one that waits there for its end.
AT_WORKER = 2

#: Exports that one job makes in the time that a template takes to start: about 15 s, and 1 s for an export.
START = 15


class Dealing:
    """The waiting batches of a run, each of one variation, and the workers that they go to.

    A worker gets batches of variations that are new to it until it has its share of the waiting variations, then the
    next batches of these. The share is one if there are as many workers as variations; a worker alone has all, and
    exports in the order of the batches. Of new variations a worker gets the one with the most exports waiting for each
    job of the workers that had it, and none that others have exported while fewer than `START` exports wait for each of
    their jobs: they are done before its template has started.

    Attributes
    ----------
    jobs
        Exports that each worker makes at once, by the worker's address. Other workers get no batches.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, int] = {}
        self._batches: dict[int, tuple[str, int]] = {}
        #: Numbers of the waiting batches of each variation that has any, as heaps, and the exports in these.
        self._waiting: dict[str, list[int]] = {}
        self._exports: Counter[str] = Counter()
        #: Number of batches that each worker has; the variations that it had, and those that it has exported.
        self._at: Counter[str] = Counter()
        self._had: defaultdict[str, set[str]] = defaultdict(set)
        self._exported: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, number: int, variation: str, exports: int) -> None:
        """Let a batch wait; those of a variation are dealt in the order of their numbers."""
        self._batches[number] = (variation, exports)
        heapq.heappush(self._waiting.setdefault(variation, []), number)
        self._exports[variation] += exports

    def deal(self) -> Iterator[tuple[str, int]]:
        """Yield workers with the number of their next batch, idle workers first, until each has all that it may."""
        for taken in range(AT_WORKER):
            for worker in self.jobs:
                if self._at[worker] == taken and (variation := self._next(worker)) is not None:
                    yield worker, self._take(worker, variation)

    def end(self, worker: str, number: int, exported: bool) -> None:
        """Note that a worker has a batch no longer, and whether it has exported it."""
        self._at[worker] -= 1
        if exported:
            self._exported[worker].add(self._batches[number][0])

    def _take(self, worker: str, variation: str) -> int:
        number = heapq.heappop(self._waiting[variation])
        if not self._waiting[variation]:
            del self._waiting[variation]
        self._exports[variation] -= self._batches[number][1]
        self._at[worker] += 1
        self._had[worker].add(variation)
        return number

    def _next(self, worker: str) -> str | None:
        """Return the variation of the worker's next batch; None if no batch waits that it should take."""
        first = {variation: numbers[0] for variation, numbers in self._waiting.items()}
        had = self._had[worker] & first.keys()
        if len(had) * len(self.jobs) < len(first):
            # Before a busy worker could begin, workers that only had it have their templates.
            started = self._had if self._at[worker] else self._exported
            new = [each for each in first.keys() - had if self._load(each, started) >= START]
            if new:
                return max(new, key=lambda each: (self._load(each, self._had), -first[each]))
        return min(had, key=first.__getitem__, default=None)

    def _load(self, variation: str, workers: Mapping[str, set[str]]) -> float:
        """Return how many exports of a variation wait for each job of those `workers` that have it."""
        jobs = sum(self.jobs[worker] for worker in self.jobs if variation in workers[worker])
        return self._exports[variation] / jobs if jobs else math.inf
