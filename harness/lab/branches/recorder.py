"""Makes the exporting process record the branches it takes."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import coverage

from executorch_goldens.artifact import Cell, Lowered
from executorch_goldens.exporting.observing import Observer
from lab.branches import FOLDERS, RECORDS
from lab.branches.records import Records


class Recorder(Observer):
    """Follows the branches that one export takes."""

    #: Patterns of the files that are followed, relative to the package ``executorch``.
    followed: Sequence[str] = tuple(f"{folder}/*" for folder in FOLDERS)

    def around(self, attempt: Any) -> Lowered:
        """Export, and write down the branches that it took, whatever its end."""
        spec = importlib.util.find_spec("executorch")
        assert spec is not None
        package = Path(next(iter(spec.submodule_search_locations or ())))
        measured = coverage.Coverage(
            branch=True,
            config_file=False,
            data_file=None,
            include=[str(package / pattern) for pattern in self.followed],
        )
        measured.start()
        try:
            return super().around(attempt)
        finally:
            measured.stop()
            data = measured.get_data()
            jumps = {
                Path(file).relative_to(package).as_posix(): data.arcs(file) or []
                for file in data.measured_files()
            }
            cell = Cell(attempt.target.name, attempt.case.name)
            Records(Path(os.environ[RECORDS])).write(cell, os.environ["PYTHONHASHSEED"], jumps)
