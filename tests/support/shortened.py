"""Cells exported with and without shortcuts, side by side, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Lowered, Outcome
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations


@dataclass(frozen=True)
class Pair:
    """A cell exported under one variation without and with shortcuts.

    Attributes
    ----------
    differing
        The differences of the two.
    """

    cell: Cell
    without: Outcome
    shortened: Outcome

    @property
    def differing(self) -> tuple[str, ...]:
        one, other = facts(self.without.result), facts(self.shortened.result)
        return tuple(name for name in {**one, **other} if one.get(name) != other.get(name))


def facts(result: Artifact | Casualty) -> dict[str, Any]:
    """Return, by name, all that an export made, but for seconds and tracebacks."""
    if isinstance(result, Casualty):
        # A log's lines follow the kernel's and the allocator's moods.
        return {"casualty": result.key()}
    found: dict[str, Any] = {}
    if isinstance(result.result, Failure):
        found["failure"] = result.result.facts()
        made = result.result.made
    else:
        made = result.result
    if isinstance(made, Lowered):
        found["graph"] = made.graph
        found["pte"] = made.pte
        found["outputs"] = (made.samples, made.bound, made.scales, made.codes)
        found |= {f"delegate {index}": delegate for index, delegate in enumerate(made.delegates)}
    if result.watched is not None:
        found["trace"] = [(run, run.beyond) for run in result.watched.passes]
        found["visitors"] = result.watched.visitors
    return found


def pairs(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    settings: Settings,
    against: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Pair]:
    """Export each cell under each seed, with the shortcuts `against` and with those of `settings`, and yield both."""
    # Each of the two has half of the cores.
    half = replace(settings, jobs=max(1, settings.jobs // 2))
    chosen, targets = variations(seeds), {cell.target for cell in cells}
    with (
        Sweep((), (), replace(half, shortcuts=against), lasting=True, targets=targets) as without,
        Sweep((), (), half, lasting=True, targets=targets) as shortened,
        ThreadPoolExecutor(2 * half.jobs) as threads,
    ):

        def both(cell: Cell) -> list[Pair]:
            found = []
            for variation in chosen:
                one = threads.submit(without.again, cell, (variation,))
                other = shortened.again(cell, (variation,))
                found.append(Pair(cell, *one.result(), *other))
            return found

        for number in range(0, len(cells), half.jobs):
            batch = [threads.submit(both, cell) for cell in cells[number : number + half.jobs]]
            for finished in batch:
                yield from finished.result()
