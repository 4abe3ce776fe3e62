"""Rejected causes are remembered, and can be declared as known defects."""

from __future__ import annotations

import shutil

import msgspec
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.goldens.decisions import REJECTED, Decision, read, write
from tests.commands.review.conftest import RUN, Review, edit, shown, titled
from tests.support.runner import Runner


def test_a_rejection_is_kept_and_shown_until_its_cause_is_accepted(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    before = read(proposed.goldens)
    group = titled(proposed, "constants with different values")
    said = review("--reject", group.name, "--reason", "  ask in the tracker ")
    assert said.code == 0
    assert shown(proposed, said.out) == snapshot
    (rejection,) = {*read(proposed.goldens)} - {*before}
    assert rejection == Decision(REJECTED, cause=group.cause, why="ask in the tracker")
    # The next run proposes the same cause in other words and on fewer cells.
    edit(proposed, "tosa-int/alpha", reason="differs in something")
    shutil.rmtree(proposed.sweeps / "tosa-fp" / "alpha")
    assert shown(proposed, review().out) == snapshot
    again = titled(proposed, "constants with different values")
    assert again.name != group.name
    assert review("--accept", again.name).code == cli.SAME
    assert "ask in the tracker" not in review().out
    assert read(proposed.goldens) == before


def test_a_cause_that_is_wrong_can_be_declared_as_known(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    before = read(proposed.goldens)
    wrong_cells = titled(proposed, "corrupt: ")
    said = review("--reject", wrong_cells.name, "--reason", "a sign\n is lost", "--known")
    assert said.code == cli.SAME, said.err
    assert shown(proposed, said.out) == snapshot
    (known,) = (each for each in read(proposed.goldens) if each not in before)
    assert (known.what, known.verdict, known.why, known.releases, known.cells) == (
        *("known", "corrupt", "a sign is lost", (proposed.release,)),
        ("tosa-fp/gamma", "tosa-int/gamma"),
    )
    assert known.finding == snapshot
    changed = titled(proposed, "constants with different values")
    review("--reject", changed.name, "--reason", "no", "--known").refused("is no known defect")
    assert set(proposed(*RUN, "--cell", "tosa-*/gamma").verdicts().values()) == {"corrupt"}
    assert proposed(*RUN, "--cell", "tosa-*/gamma").code == 0
    # One may name no cause, until a run has found it.
    wide = msgspec.structs.replace(known, finding=None)
    write(proposed.goldens, [*before, wide])
    assert shown(proposed, review("--expect").out) == snapshot
    assert known in read(proposed.goldens)
    assert "known defect" not in review("--expect").out
