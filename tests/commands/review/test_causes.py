"""Causes of wrong values: where these begin groups cells, and the largest error comes first."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.causes.groups import Group, Member, grouped, read_members, worst_first
from executorch_goldens.diff.quantities import Quantities
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.record import MODEL
from executorch_goldens.results import proposals
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.review import listing
from tests.support.screens import screen

Propose = Callable[..., Proposal]
VALUES = "output 0 float32[4]: 2 of 4 values differ, max 0.5, mean 0.1 (tolerance 0.01)"


@pytest.fixture
def propose(tmp_path: Path) -> Propose:
    """Write the proposal of a new cell that is corrupt."""

    def make(
        name: str,
        used: float | None,
        begins: str = "",
        verdict: str = "corrupt",
        reason: str = VALUES,
        loses: str | None = None,
    ) -> Proposal:
        target, case = name.split("/")
        accuracy = None if used is None else Accuracy(0.1, 0.1, used)
        folder = tmp_path / "sweeps" / "1.5.1" / target / case
        made = Proposal(
            *("1.5.1", target, case, verdict, reason, None, None, None, (), None, "", {}),
            accuracy=accuracy,
            begins=begins,
            loses=loses,
            folder=folder,
        )
        made.write(None)
        return made

    return make


def causes(tmp_path: Path) -> list[Group]:
    return worst_first(grouped(read_members(proposals.find(tmp_path / "sweeps"), tmp_path / "goldens")))


def named(groups: list[Group]) -> list[list[str]]:
    return [[str(member.proposal.cell) for member in group.members] for group in groups]


def test_wrong_values_that_begin_in_different_places_are_different_causes_the_worst_first(
    propose: Propose, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    propose("xnnpack-fp32/gelu", 161.0, "aten.gelu in XnnpackBackend")
    propose("xnnpack-fp32/linear", 40.0, "aten.linear in XnnpackBackend")
    propose("xnnpack-int8/linear", 4e5, "aten.linear in XnnpackBackend")
    propose("xnnpack-fp32/state", 7e5)
    propose("xnnpack-fp32/narrow", 3.0)
    propose("tosa-fp/nan", math.inf, "before the delegates")
    groups = causes(tmp_path)
    assert named(groups) == [
        ["tosa-fp/nan"],
        ["xnnpack-fp32/state"],
        ["xnnpack-fp32/linear", "xnnpack-int8/linear"],
        ["xnnpack-fp32/gelu"],
        ["xnnpack-fp32/narrow"],
    ]
    assert str(groups[2].specimen.proposal.cell) == "xnnpack-int8/linear"
    assert screen(listing.listing(groups, {}), {tmp_path: "TMP"}) == snapshot


def test_cells_whose_signal_is_lost_have_one_cause_where_one_kind_of_quantization_loses_it(
    propose: Propose, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """Their sentences are alike: it is how much is left that differs, and a reason is without numbers."""
    weights = "a parameter of aten.linear.default in codes -8 to 7"
    for cell, decibels, loses in (
        ("built/four-bits", 18.4, weights),
        ("tosa-int/four-bits", 17.9, weights),
        ("built/mask", 1.4, "aten.add.Tensor in codes -128 to 127"),
        ("built/unknown", 1.4, ""),
        ("built/another", 1.4, ""),
    ):
        reason = f"useless quantization: output 0 is {decibels} dB above the noise of quantization"
        propose(cell, 0.5, verdict="imprecise", reason=reason, loses=loses)
    groups = causes(tmp_path)
    assert sorted(named(groups)) == [
        ["built/another"],
        ["built/four-bits", "tosa-int/four-bits"],
        ["built/mask"],
        ["built/unknown"],
    ]
    assert [group.title for group in groups if len(group.members) > 1] == snapshot


def test_a_cell_that_gives_no_number_is_worse_than_any_error_and_one_that_is_not_wrong_comes_last(
    propose: Propose, tmp_path: Path
) -> None:
    propose("xnnpack-fp32/a", 1e6, "aten.gelu in XnnpackBackend")
    propose("xnnpack-fp32/b", None)
    for case in "cdef":
        propose(f"xnnpack-fp32/{case}", 0.5, verdict="new")
    assert named(causes(tmp_path)) == [
        ["xnnpack-fp32/b"],
        ["xnnpack-fp32/a"],
        [f"xnnpack-fp32/{case}" for case in "cdef"],
    ]


def test_the_list_of_a_review_has_the_order_of_a_run_within_each_heading(
    propose: Propose, tmp_path: Path
) -> None:
    propose("xnnpack-fp32/small", 2.0, "aten.gelu in XnnpackBackend")
    propose("xnnpack-int8/small", 2.0, "aten.gelu in XnnpackBackend")
    propose("xnnpack-fp32/large", 9.0, "aten.linear in XnnpackBackend")
    groups = grouped(read_members(proposals.find(tmp_path / "sweeps"), tmp_path / "goldens"))
    assert named(groups)[0] == ["xnnpack-fp32/large"]
    assert groups == worst_first(groups)


def test_cases_that_draw_their_weights_are_one_cause_whichever_weights_these_are() -> None:
    reason = "the case is the cause: its weights differ before anything is lowered"
    members = [
        Member(
            Proposal(
                *(
                    "1.5.1",
                    "built",
                    case,
                    "unstable",
                    f"{reason} ({names})",
                    MODEL,
                    None,
                    None,
                    (),
                    None,
                    "",
                    {},
                )
            ),
            *(None, None, {}, Quantities(), ""),
        )
        for case, names in (("one", "0.weight"), ("two", "layers.2.bias"))
    ]
    first, second = (Group((member,), {}) for member in members)
    assert first.title == f"unstable: {reason}"
    assert first.cause == second.cause


@pytest.mark.parametrize(
    ("verdict", "blamed", "reason", "rejects"),
    [
        ("failed", None, "the case itself does not run: ValueError: no", False),
        (
            "failed",
            None,
            "the error is raised by a file of your own, /a.py, line 1, in f: KeyError: 1",
            False,
        ),
        ("unstable", MODEL, "the case gives two models (0.weight)", False),
        ("changed", MODEL, "differs from its golden in model.txt", True),
        ("corrupt", "pass", "output 0 float32[2]: 1 of 2 values differ", True),
    ],
)
def test_what_is_wrong_in_the_case_is_not_rejected(
    verdict: str, blamed: str | None, reason: str, rejects: bool
) -> None:
    made = Proposal(
        *("1.5.1", "tosa-fp", "linear", verdict, reason), blamed, None, None, ("models",), None, "", {}
    )
    group = Group((Member(made, None, None, {}, Quantities(), ""),), {})
    assert ("reject" in listing.actions(group)) is rejects


def test_a_title_has_the_numbers_of_one_of_its_cells() -> None:
    reason = "output 0 (drawn): is float32[2, 3], expected int64[2, 3]"
    made = Proposal(
        *("1.5.1", "tosa-fp", "linear", "corrupt", reason), None, None, None, ("models",), None, "", {}
    )
    assert Group((Member(made, None, None, {}, Quantities(), ""),), {}).title == f"corrupt: {reason}"
