"""Splits the cells of a run among machines.

Cells with seconds in the committed table (`sweep.seconds`) are dealt out greedily, the longest
first, each to the shard with the least to do. A cell that is not in the table goes to the shard whose number gives the
largest digest with its name (rendezvous hashing). So shards are the same on every machine, and a new case moves no
other cell: only a change of the table does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Cell
from executorch_goldens.sweep.seconds import Seconds


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of a run; `number` is from 1."""

    number: int
    count: int

    @classmethod
    def named(cls, text: str) -> Shard:
        """Read ``2/5``; raise ValueError.

        >>> Shard.named("2/5")
        Shard(number=2, count=5)
        """
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text, re.ASCII)
        if match is None:
            raise ValueError(f"{text!r} is not NUMBER/COUNT, such as 2/5")
        number, count = int(match[1]), int(match[2])
        if not 1 <= number <= count:
            raise ValueError(f"{text!r} is no shard: of {count} shards the numbers are 1 to {count}")
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def select(self, cells: Sequence[Cell], seconds: Seconds) -> frozenset[Cell]:
        """Return this shard's part of `cells`."""
        return frozenset(split(cells, seconds, self.count)[self.number - 1])


def split(cells: Sequence[Cell], seconds: Seconds, count: int) -> list[list[Cell]]:
    """Return the cells of each of `count` shards."""
    shards: list[list[Cell]] = [[] for _ in range(count)]
    loads = [0.0] * count
    known = [cell for cell in cells if cell in seconds.measured]
    for cell in sorted(known, key=lambda cell: (-seconds.measured[cell], str(cell))):
        number = loads.index(min(loads))
        shards[number].append(cell)
        loads[number] += seconds.measured[cell]
    for cell in cells:
        if cell not in seconds.measured:
            shards[max(range(count), key=lambda number: _digest(number, cell))].append(cell)
    return shards


def _digest(number: int, cell: Cell) -> bytes:
    return hashlib.sha256(f"{number} {cell}".encode()).digest()
