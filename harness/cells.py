"""One test per cell: ``nox -s goldens``, or ``pytest --pyargs harness.cells`` in a release's environment."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.artifact import Cell
from harness.decode import DecodeError
from harness.extensions import ExtensionError
from harness.judging.golden import GoldenError
from harness.run import Run
from harness.sweep import SweepError


def test_golden(cell: Cell, run: Run, snapshot: SnapshotAssertion) -> None:
    """All variations of `cell` agree, the artifact is right, and it equals its golden."""
    message = ""
    try:
        judged = run.check(cell, snapshot)
        if not judged.accepted:
            message = run.message(judged)
    except (SweepError, ExtensionError) as error:
        # Nothing of this run can be exported as asked: one error, not one per cell.
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    except (GoldenError, DecodeError) as error:
        message = f"{cell}: {error}"
    if message:
        pytest.fail(message, pytrace=False)
