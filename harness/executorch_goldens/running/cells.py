"""One test per cell: ``nox -s goldens``, or ``goldens run`` in a release's environment."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.extensions import ExtensionError
from executorch_goldens.files import os_errors, untrusted
from executorch_goldens.files.os_errors import OsRefusedError
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.running import messages
from executorch_goldens.running.failing import CellFailure, properties
from executorch_goldens.running.run import Run
from executorch_goldens.sweep.store import StoreError
from executorch_goldens.sweep.sweep import SweepError


def test_golden(
    golden_cell: Cell, golden_run: Run, snapshot: SnapshotAssertion, request: pytest.FixtureRequest
) -> None:
    """All variations of the cell agree, the artifact is right, and it equals its golden."""
    failure = None
    try:
        with os_errors.as_user_error():
            judged = golden_run.check(golden_cell, snapshot)
        if not judged.accepted:
            failure = CellFailure(judged, messages.failure(golden_run, judged))
    except (SweepError, StoreError, ExtensionError, GoldenError, OsRefusedError) as error:
        # Nothing of this run can be exported or written as asked: one error, not one per cell.
        pytest.exit(untrusted.escape_ci(str(error)), returncode=pytest.ExitCode.USAGE_ERROR)
    # The fixture for it warns of a JUnit family whose readers may not know properties.
    request.node.user_properties += properties(judged).items()
    if failure is not None:
        raise failure
