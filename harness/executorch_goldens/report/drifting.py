"""Changes from each release of a report to the next, by cause."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from packaging.version import Version

from executorch_goldens.report.gathering import Gathered
from executorch_goldens.review.drift import Drift


def drifts(gathered: Gathered) -> Iterator[Drift]:
    """Yield the drift between the goldens of the cells that are checked, of each release and the next.

    The goldens of two releases are held at a time; those of a single one are not read.
    """
    versions = sorted(gathered.releases, key=Version)
    old = gathered.readings(versions[0]) if len(versions) > 1 else {}
    for before, after in itertools.pairwise(versions):
        new = gathered.readings(after)
        drift = Drift.of((before, old), (after, new))
        if drift.common:
            yield drift
        old = new
