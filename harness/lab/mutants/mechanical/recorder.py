"""Has the process that exports write down which lines of the mutated sources it runs."""

from __future__ import annotations

from lab.branches.recorder import Recorder as BranchRecorder
from lab.mutants.mechanical import PLACES


class Recorder(BranchRecorder):
    """Follows one export through the mutated sources."""

    followed = tuple(
        place if place.endswith(".py") else f"{place}/*" for places in PLACES.values() for place in places
    )
