"""``goldens run --origins``: exports mark nodes, and what the marks say is left beside the results of each cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from executorch_goldens.artifact import Outcome
from executorch_goldens.running.additions import Addition
from executorch_goldens.settings.exports import Settings
from executorch_goldens_plugins.explorer import origins

#: Observer of the exporting process, which imports torch.
MARKING = "executorch_goldens_plugins.explorer.marks:Marking"


class OriginsOption(Addition):
    """``--origins``."""

    def settings(self, settings: Settings) -> Settings:
        """Let exports mark nodes."""
        return dataclasses.replace(settings, observer=MARKING)

    def judged(self, folder: Path, outcomes: Sequence[Outcome]) -> None:
        """Leave the origins of a cell."""
        origins.write(folder, outcomes)
