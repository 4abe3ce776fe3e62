"""Has the process that exports write down what it takes of the sources.

An exporting process imports this because `harness.sweeping.settings.Settings.models` names it, after the zoos. It
brings the patch `harness.branches.PATCH`, which `harness.sweeping.sweep.Sweep` is asked to install further.
"""

from __future__ import annotations

import importlib.util
import os
from functools import wraps
from pathlib import Path
from typing import Any

from harness import patches, releases
from harness.artifact import Cell
from harness.branches import FOLDERS, PATCH, RECORDS
from harness.branches.records import Records


def _install(release: str) -> None:
    import coverage

    from harness.exporting.export import Export

    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    package = Path(next(iter(spec.submodule_search_locations or ())))
    records = Records(Path(os.environ[RECORDS]))
    run = Export.run

    @wraps(run)
    def recorded(self: Export) -> Any:
        measured = coverage.Coverage(
            branch=True,
            config_file=False,
            data_file=None,
            include=[str(package / folder / "*") for folder in FOLDERS],
        )
        measured.start()
        try:
            return run(self)
        finally:
            measured.stop()
            data = measured.get_data()
            jumps = {
                Path(file).relative_to(package).as_posix(): data.arcs(file) or []
                for file in data.measured_files()
            }
            cell = Cell(self.target.name, self.case.name)
            records.write(cell, os.environ["PYTHONHASHSEED"], jumps)

    Export.run = recorded  # type: ignore[method-assign]


patches.register(
    patches.Patch(
        name=PATCH,
        report=None,
        summary="nothing is different; the branches that an export takes are written down",
        known={version: {} for version in releases.load().releases},
        install=_install,
    )
)
