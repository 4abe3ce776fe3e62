"""What changed from each release of a report to the next, by cause."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from packaging.version import Version

from harness.artifact import Cell
from harness.drift.reading import Reading
from harness.drift.report import Drift


def drifts(readings: Mapping[str, Mapping[Cell, Reading]]) -> Iterator[Drift]:
    """Yield the drift between the goldens of the cells that are checked, of each release and the next."""
    versions = sorted(readings, key=Version)
    for before, after in itertools.pairwise(versions):
        drift = Drift.of((before, readings[before]), (after, readings[after]))
        if drift.common:
            yield drift
