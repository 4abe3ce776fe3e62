"""One test per cell: ``nox -s goldens``, or ``python -m harness run`` in a release's environment."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from harness import machine, messages, untrusted
from harness.artifact import Cell
from harness.extensions import ExtensionError
from harness.judging.golden import GoldenError
from harness.machine import MachineError
from harness.run import Run
from harness.storage.reuse import ReuseError
from harness.storage.store import StoreError
from harness.sweeping.sweep import SweepError


def test_golden(golden_cell: Cell, golden_run: Run, snapshot: SnapshotAssertion) -> None:
    """All variations of the cell agree, the artifact is right, and it equals its golden."""
    message = ""
    try:
        with machine.told():
            judged = golden_run.check(golden_cell, snapshot)
        if not judged.accepted:
            message = messages.failure(golden_run, judged)
    except (SweepError, StoreError, ExtensionError, GoldenError, MachineError) as error:
        # Nothing of this run can be exported or written as asked: one error, not one per cell.
        pytest.exit(untrusted.inert(str(error)), returncode=pytest.ExitCode.USAGE_ERROR)
    except ReuseError as error:
        message = untrusted.inert(str(error))
    if message:
        pytest.fail(message, pytrace=False)
