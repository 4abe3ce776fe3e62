"""Order of exports, and the templates that the next ones need."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from executorch_goldens.artifact import Cell
from executorch_goldens.zoo.variations import Variation


@dataclass(frozen=True)
class Job:
    """One export to be made.

    Attributes
    ----------
    again
        Whether a template that hung or died had it before.
    awaited
        Whether a caller waits for it alone, whatever else was asked for before.
    """

    number: int
    cell: Cell
    variation: Variation
    again: bool = False
    awaited: bool = False

    def __str__(self) -> str:
        return f"{self.cell} [{self.variation.name}]"

    @property
    def place(self) -> tuple[bool, bool, int]:
        """The position among waiting jobs."""
        return not self.again, not self.awaited, self.number


class Schedule:
    """The jobs that no template has yet, a queue for each variation; any thread may add, one takes.

    Parameters
    ----------
    held
        Cells whose jobs wait for `release` (`add_unheld`).
    """

    def __init__(self, held: Iterable[Cell] = ()) -> None:
        self._queues: dict[Variation, collections.deque[Job]] = {}
        self._held: dict[Cell, list[Job]] = {cell: [] for cell in held}

    def __len__(self) -> int:
        return sum(map(len, list(self._queues.values())))

    def add(self, jobs: Iterable[Job]) -> None:
        """Let `jobs` wait after those that do; before them if they are awaited, or were a dead template's."""
        for job in jobs:
            self._queues.setdefault(job.variation, collections.deque()).append(job)
            if job.again or job.awaited:
                self._queues[job.variation].rotate(1)

    def add_unheld(self, jobs: Iterable[Job]) -> None:
        """Let `jobs` wait, those of held cells for their release."""
        for job in jobs:
            if job.cell in self._held:
                self._held[job.cell].append(job)
            else:
                self.add([job])

    def release(self, cell: Cell) -> None:
        """Let the jobs of a held cell wait with the others, now or when they come."""
        self.add(self._held.pop(cell, ()))

    def held(self) -> set[Variation]:
        """Return the variations of jobs that are held."""
        return {job.variation for jobs in list(self._held.values()) for job in jobs}

    def drop(self, cell: Cell) -> set[Variation]:
        """Let no job of `cell` wait that nobody awaits alone; return the variations of those that did."""
        found = {job for job in self.waiting() if job.cell == cell and not job.awaited}
        for job in found:
            self._queues[job.variation].remove(job)
        return {job.variation for job in found}

    def waiting(self) -> list[Job]:
        """Return every job that waits; from any thread."""
        return [job for queue in list(self._queues.values()) for job in list(queue)]

    def empty(self) -> list[Job]:
        """Return every job that waits, in the order of their numbers; none waits any longer."""
        jobs = self.waiting()
        self._queues.clear()
        return sorted(jobs, key=lambda job: job.place)

    def take(self, ready: Collection[Variation]) -> Job | None:
        """Return the next job that one of the templates `ready` can make, which waits no longer."""
        job = self._first(variation for variation in list(self._queues) if variation in ready)
        if job is not None:
            self._queues[job.variation].popleft()
        return job

    def lacking(self, started: Collection[Variation]) -> Variation | None:
        """Return whose template the next job waits for, other than those `started`."""
        job = self._first(variation for variation in list(self._queues) if variation not in started)
        return job.variation if job is not None else None

    def first(self, variation: Variation) -> Job | None:
        """Return the next job of `variation`, which still waits; None where none does."""
        return next(iter(self._queues.get(variation, ())), None)

    def _first(self, variations: Iterable[Variation]) -> Job | None:
        heads = [queue[0] for variation in variations if (queue := self._queues[variation])]
        return min(heads, key=lambda job: job.place, default=None)
