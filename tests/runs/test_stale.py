"""Stale goldens: when they are reported, and when they fail a run."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import Artifacts
from tests.runs.conftest import UPDATE, WHOLE
from tests.support.runner import Runner


@pytest.mark.parametrize("asked", [(), (UPDATE,)], ids=["reading", "updating"])
def test_a_stale_golden_is_reported_and_fails_a_whole_run(
    shrunk: Runner, asked: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    before = shrunk.files()
    finished = shrunk(*WHOLE, *asked)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert set(finished.verdicts().values()) == {"stable"}
    assert finished.printed() == snapshot
    assert shrunk.files() == before


def test_what_is_no_golden_is_named_and_is_not_stale(shrunk: Runner, snapshot: SnapshotAssertion) -> None:
    foreign = shrunk.root / "tosa-fp" / "notes.txt"
    foreign.write_text("mine")
    finished = shrunk(*WHOLE)
    assert finished.printed() == snapshot


@pytest.mark.parametrize(
    "limited",
    [
        ("-k", "tosa"),
        ("--cell", "tosa-fp/*"),
        ("--deselect", "harness/executorch_goldens/running/cells.py::test_golden[tosa-fp/alpha]"),
        ("--collect-only",),
    ],
    ids=["-k", "--cell", "--deselect", "--collect-only"],
)
def test_a_run_that_does_not_see_every_cell_is_not_failed_by_a_stale_golden(
    shrunk: Runner, limited: tuple[str, ...]
) -> None:
    finished = shrunk(*WHOLE, *limited)
    assert finished.code == 0, finished.output


def test_a_failing_cell_is_what_fails_a_run(shrunk: Runner, artifacts: Artifacts) -> None:
    shrunk.answers({"xnnpack-int8/alpha": artifacts["wrong"], "alpha": artifacts["steady"]})
    assert shrunk(*WHOLE).code == pytest.ExitCode.TESTS_FAILED
