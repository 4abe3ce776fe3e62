"""The message of a cell: the reason, and the lines under it in one order."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import STAGE, PassRun
from executorch_goldens.diff.difference import Difference
from executorch_goldens.goldens.decisions import KNOWN, Decision
from executorch_goldens.goldens.findings import (
    Differs,
    Disagreement,
    Frame,
    UnequalOutputs,
    Unexpected,
    Unsteady,
)
from executorch_goldens.goldens.labels import Labels
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.attribution import Attribution, Follows
from executorch_goldens.judging.divergence import Divergence, How
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.judging.verdict import KnownOtherwise, Verdict
from executorch_goldens.words.verdicts import UNTRACED, detail, reason
from tests.support.findings import GROUPS, INVALID, WRONG
from tests.support.screens import of_verdict
from tests.support.verdicts import verdict

DISAGREES, UNEQUAL = Disagreement(GROUPS), UnequalOutputs(GROUPS, (), (None, WRONG))
LOWERED = PassRun(STAGE, "lowered", "a", True)
DIFFERS = Divergence("lowered", How.RESULTS, (LOWERED,), 1, 2)
OTHERS = tuple(
    Decision(KNOWN, "corrupt", finding=finding, why=why, releases=("1.5.1",), cells=("a/b",))
    for finding, why in (({"kind": "biased"}, ""), (None, "an issue"))
)


def sides(one: str, other: str) -> Difference:
    return Difference(Record({}, {"graph": one}), Record({}, {"graph": other}), Labels("seed0", "seed1"))


def test_lines_come_as_where_then_known_otherwise_then_what_was_found_and_what_differs(
    snapshot: SnapshotAssertion,
) -> None:
    found = verdict(
        "unstable",
        DISAGREES,
        INVALID,
        divergence=DIFFERS,
        attribution=Attribution(Follows.ADDRESS, variation="seed0-heap0"),
        after={"seed0": "x\n", "seed1": "y\n"},
        raised=(Frame("nets/gate.py", 41, "build"), 2),
        otherwise=KnownOtherwise(Path("decisions.toml"), OTHERS),
        difference=sides("a\n", "b\n"),
        whole=Path("a/whole.txt"),
        undiagnosed=("why it is not known",),
        is_traced=True,
    )
    assert of_verdict(found) == snapshot


@pytest.mark.parametrize("is_traced", [None, False, True])
def test_that_no_pass_is_named_is_said_only_where_somebody_looked(is_traced: bool | None) -> None:
    of_wrong = detail(verdict("corrupt", WRONG, is_traced=is_traced))
    assert (UNTRACED in of_wrong) == (is_traced is False)
    for found, where in ((DISAGREES, "by serialization or emission"), (UNEQUAL, "when the program runs")):
        said = f"no pass diverges: the difference arises {where}"
        assert (said in detail(verdict("unstable", found, is_traced=is_traced))) == (is_traced is not None)


def test_a_decision_that_is_missing_is_a_line_of_what_is_unexpected_and_of_nothing_else() -> None:
    found = Unexpected("FAILURE", "export: no"), Differs(("graph",))
    unexpected, changed = (
        verdict(name, each, refusal=Fewer(4, 2))
        for name, each in zip(("unexpected", "changed"), found, strict=True)
    )
    assert (len(detail(unexpected)), detail(changed)) == (1, ())


def test_a_reason_is_one_line_and_the_rest_is_under_it() -> None:
    found = verdict("failed", Unsteady("ZooError", "its model raises\nmore"))
    assert reason(found) == "the case is the cause: its model raises"
    assert detail(found)[0] == "more"


def test_a_stable_cell_has_nothing_to_say() -> None:
    found = Verdict(verdict("stable").cell, "stable")
    assert (reason(found), detail(found)) == ("", ())
