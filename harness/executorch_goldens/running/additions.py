"""What options of plugins change in a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executorch_goldens.artifact import Cell, Outcome
    from executorch_goldens.settings.exports import Settings
    from executorch_goldens.sweep.reuse import Reuse
    from executorch_goldens.sweep.sweep import Sweep
    from executorch_goldens.zoo.variations import Variation


class Addition:
    """An option of a plugin that a run was given; this one changes nothing.

    Attributes
    ----------
    option
        The option as it is typed.
    value
        Its value.
    """

    def __init__(self, option: str, value: Any) -> None:
        self.option = option
        self.value = value

    @property
    def place(self) -> str:
        """Where exports are made, in words; empty for this machine. From elsewhere they come back through the cache."""
        return ""

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of the run's exports."""
        return settings

    def sweep(
        self,
        release: str,
        cells: Sequence[Cell],
        variations: Sequence[Variation],
        settings: Settings,
        reuse: Reuse | None,
    ) -> Sweep | None:
        """Return the sweep of a run in place of the usual one, or None; where there is a `place`, there is a cache."""
        return None

    def judged(self, folder: Path, outcomes: Sequence[Outcome]) -> None:
        """Leave something beside the results of a cell, in a folder that only what it makes has."""
