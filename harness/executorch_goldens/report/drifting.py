"""Changes from each release of a report to the next, by cause."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from packaging.version import Version

from executorch_goldens.artifact import Cell
from executorch_goldens.compare.drift import Drift
from executorch_goldens.goldens.reading import Reading


def drifts(readings: Mapping[str, Mapping[Cell, Reading]]) -> Iterator[Drift]:
    """Yield the drift between the goldens of the cells that are checked, of each release and the next."""
    versions = sorted(readings, key=Version)
    for before, after in itertools.pairwise(versions):
        drift = Drift.of((before, readings[before]), (after, readings[after]))
        if drift.common:
            yield drift
