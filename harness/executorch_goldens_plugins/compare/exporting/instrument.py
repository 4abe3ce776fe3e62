"""What exporting processes record of the sources that they run: lines, and what edited functions give."""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.exporting import observing
from executorch_goldens.settings import exports
from executorch_goldens_plugins.compare.exporting import reaching
from executorch_goldens_plugins.compare.exporting.probing import Prober


def instrument(
    reach: Sequence[str], probes: Mapping[str, tuple[str, tuple[str, ...]]] | None = None
) -> exports.Instrumentation | None:
    """Return the settings that record lines, and compare functions; None where there is no file to look at."""
    return (
        exports.Instrumentation(f"{__name__}:SourceInstrument", tuple(reach), probes or {}) if reach else None
    )


class SourceInstrument(observing.Instrument):
    """Records the lines of files, and compares edited functions."""

    def __init__(self, settings: exports.Instrumentation) -> None:
        self.prober = Prober(settings.probes) if settings.probes else None
        if self.prober is not None:
            self.prober.install()
        reaching.install(Path(sysconfig.get_path("purelib")), settings.reach, self.prober)

    def imported(self) -> None:
        if self.prober is not None:
            self.prober.watch_passes()

    def begin(self) -> None:
        reaching.begin()
        if self.prober is not None:
            self.prober.begin()

    def taken(self) -> Mapping[str, Any]:
        reach = reaching.taken()
        return {"reach": reach, "probes": self.prober.taken(reach) if self.prober is not None else ()}
