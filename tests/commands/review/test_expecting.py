"""Reviews of failing cells: accepted only with the decision, which is written beside the goldens."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import PENDING, UNDECIDED
from executorch_goldens.goldens import decisions, golden
from executorch_goldens.goldens.decisions import FAILURE, Decision
from tests.commands.review.conftest import RUN, Review, cells, shown, titled
from tests.support.runner import OPAQUE, Runner

CELLS = ("xnnpack-fp32/beta", "xnnpack-int8/beta")


@pytest.fixture(autouse=True)
def nothing_expected(proposed: Runner) -> None:
    (proposed.goldens / decisions.FILE).unlink()


def test_a_cause_that_makes_cells_fail_is_a_decision_and_is_listed_so(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    group = titled(proposed, "fails: ")
    assert (group.state, cells(group)) == (UNDECIDED, set(CELLS))
    assert shown(proposed, review().out) == snapshot


def test_it_is_not_accepted_without_being_expected(proposed: Runner, review: Review) -> None:
    before = proposed.files()
    refused = review("--accept", titled(proposed, "fails: ").name)
    refused.refused(
        "nothing was recorded", CELLS[0], "a FAILURE is recorded only if", "--accept GROUP --expect"
    )
    assert proposed.files() == before


def test_it_is_accepted_and_expected_in_one_step(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    group, why = titled(proposed, "fails: "), "an operator without an out variant"
    said = review("--accept", group.name, "--expect", "--reason", why)
    assert said.code == 0, said.err
    assert shown(proposed, said.out) == snapshot
    expected = Decision(FAILURE, cause=OPAQUE, why=why, releases=(proposed.release,), cells=CELLS)
    assert decisions.read(proposed.goldens) == (expected,)
    for cell in CELLS:
        texts = golden.read(golden.file_of(proposed.root, Cell.named(cell)))
        assert texts.fails
    words = [word for cell in CELLS for word in ("--cell", cell)]
    assert set(proposed(*RUN, *words).verdicts().values()) == {"stable"}


def test_a_proposal_may_be_accepted_once_it_is_expected(proposed: Runner, review: Review) -> None:
    proposed.expect(*CELLS)
    group = titled(proposed, "fails: ")
    assert group.state == PENDING
    assert review("--accept", group.name).code == 0


def test_what_no_cell_decides_expects_nothing(proposed: Runner, review: Review) -> None:
    assert review("--accept", titled(proposed, "constants").name, "--expect").code == 0
    assert not (proposed.goldens / decisions.FILE).exists()


def test_expectations_of_goldens_that_are_there_are_written(
    proposed: Runner, review: Review, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    assert review("--accept", titled(proposed, "fails: ").name, "--expect").code == 0
    (proposed.goldens / decisions.FILE).unlink()
    proposed.expect("tosa-fp/alpha")
    monkeypatch.setenv("CI", "1")
    review("--expect").refused("review --expect is refused because CI is set")
    monkeypatch.delenv("CI")
    said = review("--expect")
    assert said.code == 0, said.err
    assert shown(proposed, said.out) == snapshot
    (stated,) = decisions.read(proposed.goldens)
    assert stated.cells == CELLS
    assert (stated.cause, stated.why) == (OPAQUE, "")


@pytest.mark.parametrize(
    "words", [("--show", "1f0c9a3e", "--expect"), ("--expect", "--reason", "none")], ids=" ".join
)
def test_it_goes_with_accepting_or_alone(review: Review, words: tuple[str, ...]) -> None:
    said = review(*words)
    assert said.code != 0
    assert "goes with" in said.err
