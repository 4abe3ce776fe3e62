"""Templates that stay: the sweep of each round exports in those that the last one left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.running.additions import Addition
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.schedule import Schedule
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.sweep.template import Templates
from executorch_goldens.zoo.variations import Variation


class Standby(Templates):
    """Templates of several sweeps that export in them one after the other.

    Parameters
    ----------
    targets
        Exports that they make before they serve.
    """

    patience = 0.0

    def __init__(self, targets: Iterable[str]) -> None:
        super().__init__()
        self.targets = sorted(targets)

    def end_idle(self, schedule: Schedule) -> None:
        """Let them wait for the next sweep."""

    def let_go(self) -> None:
        """Leave them to the next sweep."""

    def records(self) -> list[Path]:
        """Return the files in which templates have recorded what they depend on."""
        return sorted(self.folder.path.glob("*.json"))

    def end_all(self) -> None:
        """End them all; the next sweep starts others, with records of their own."""
        super().end_all()
        for record in self.records():
            record.unlink()

    def close(self) -> None:
        """End them, and delete their folder."""
        self.end_all()
        super().let_go()


class StandingSweep(Sweep):
    """A sweep in templates of earlier ones, which it leaves to the next."""

    def abort(self, why: str) -> None:
        """Let what waits for outcomes get a `SweepError`, from any thread; templates stay."""
        with self.changed:
            self.error = self.error or SweepError(why)
            self.changed.notify_all()

    def _part(self) -> None:
        """Leave templates to the next sweep, without exports and one for each variation."""
        self.schedule.empty()
        for template in self.templates.values():
            template.kill_children()
        while any(template.running for template in self.templates.values()):
            self._hear()
        for variation in self.variations:
            if variation not in self.templates and not self.stopping:
                self._start_template(variation)


class WatchOption(Addition):
    """``--watch``, with the templates of its rounds."""

    def sweep(
        self,
        release: str,
        cells: Sequence[Cell],
        variations: Sequence[Variation],
        settings: Settings,
        reuse: Reuse | None,
    ) -> StandingSweep:
        """Return the sweep of a round."""
        standby: Standby = self.value
        return StandingSweep(
            cells, variations, settings, targets=standby.targets, templates=standby, reuse=reuse
        )
