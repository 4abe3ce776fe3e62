"""The page of a cell: what it offers to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.causes.groups import Group, Member
from executorch_goldens.diff.quantities import Quantities
from executorch_goldens.goldens.findings import Fault, LoadedOtherwise
from executorch_goldens.judging.divergence import How
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.results.rows import Diverged
from executorch_goldens_plugins.report.cell import CellPage
from executorch_goldens_plugins.report.gathering import CellResult
from executorch_goldens_plugins.report.operators import Hunk
from tests.support.rows import row

COMMANDS = {"accept": "goldens run --snapshot-update", "again": "goldens run"}


def member(verdict: str) -> Member:
    names = ("1.5.1", "tosa-fp", verdict, verdict, (LoadedOtherwise("it differs"),))
    return Member(Proposal(*names, "SomePass", "0", None, (), None, "", {}), None, None, {}, Quantities(), "")


@pytest.mark.parametrize(
    ("verdicts", "offered"), [(["changed"], ["accept", "again"]), (["changed", "corrupt"], ["again"])]
)
def test_a_cell_of_a_cause_that_makes_others_wrong_does_not_offer_to_accept_it(
    verdicts: list[str], offered: list[str]
) -> None:
    found = CellResult(row(verdict="changed", reason="it differs"), Path(), (), None, "changed")
    group = Group(tuple(map(member, verdicts)), {})
    page = CellPage(
        found,
        group,
        Evidence(commands=COMMANDS, message=[("pass", "it differs"), ("", "more")]),
        ("golden", "now"),
    )
    assert list(page.commands) == offered
    assert page.message == ["more"]


@pytest.mark.parametrize(("fault", "blamed"), [("toolchain", "model"), ("case", "")])
def test_no_pass_is_blamed_for_a_case_that_is_another_model_each_time(fault: str, blamed: str) -> None:
    diverged = Diverged("model", How.WEIGHTS, 0, 0, ("weight",))
    found = CellResult(
        row(verdict="unstable", fault=Fault(fault), divergence=diverged), Path(), (), None, "unstable"
    )
    assert CellPage(found, None, Evidence(), ("golden", "now")).blamed == blamed


@pytest.mark.parametrize(
    ("hunks", "left"), [([], slice(0, None)), ([Hunk([("a", True)], [("b", True)])], slice(2, None))]
)
def test_a_difference_of_delegates_is_told_once(hunks: list[Hunk], left: slice) -> None:
    found = CellResult(row(verdict="changed", reason="it differs"), Path(), (), None, "changed")
    message = [
        ("delegate_0.tosa", "delegate_0.tosa: - golden, + now"),
        ("delegate_0.tosa", "  operator added: ADD"),
        ("graph", "graph: - golden, + now"),
        ("graph", "  +x"),
    ]
    page = CellPage(found, None, Evidence(message=message), ("golden", "now"), hunks=hunks)
    assert page.message == [line for _, line in message[left]]
