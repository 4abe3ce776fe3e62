"""Known defects."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.goldens.decisions import KNOWN, Decision, read, write
from tests.conftest import Artifacts
from tests.runs.conftest import UPDATE, WHOLE
from tests.support.runner import Runner


def test_a_known_defect_is_shown_and_fails_as_soon_as_it_is_another(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.know(
        {"tosa-fp/alpha": "corrupt: upstream issue 1", "tosa-int/alpha": "order-only: upstream issue 2"}
    )
    wrong_cells = {"tosa-fp/alpha": artifacts["wrong"], "tosa-int/alpha": artifacts["wrong"]}
    recorded.answers({"*": artifacts["steady"], **wrong_cells})
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", "-v")
    assert finished.code == 0, finished.output
    assert finished.printed() == snapshot
    finished = recorded(*WHOLE, "--cell", "tosa-int/alpha")
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert finished.verdicts() == {"tosa-int/alpha": "corrupt"}


def test_a_known_defect_that_names_its_cause_covers_no_other_fault_of_the_cell(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"*": artifacts["wrong"]})
    words = (*WHOLE, "--cell", "tosa-fp/alpha")
    (row,) = recorded(*words).rows.values()
    before = read(recorded.goldens)
    whole = row["cause"]
    assert (whole["output"], whole["begins"]) == ([0], "before the delegates")
    for finding, accepted in (({"kind": whole["kind"]}, True), (whole | {"output": 1}, False)):
        write(recorded.goldens, before)
        of_cell = {"releases": (recorded.release,), "cells": ("tosa-fp/alpha",)}
        recorded.decide(Decision(KNOWN, "corrupt", finding=finding, why="issue 1", **of_cell))
        finished = recorded(*words)
        assert (finished.code == 0) is accepted, finished.output
        assert finished.printed() == snapshot


def test_a_known_defect_that_is_gone_fails_and_is_not_recorded_before_its_entry_is_deleted(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    (recorded.root / "tosa-fp" / "alpha.txt").unlink()
    recorded.know({"tosa-fp/alpha": "corrupt: upstream issue 1"})
    before = recorded.files()
    recorded.answers({"*": artifacts["steady"]})
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    finished.refused()
    assert finished.printed() == snapshot
    assert recorded.files() == before
