"""Edits: what cells that show one difference have in common, what is a cell's own, and the words for both."""

from __future__ import annotations

import json

import pytest

from executorch_goldens.diff.edits import (
    ATTRIBUTES,
    CONSTANTS,
    KINDS,
    OPERATORS,
    Attribute,
    Constants,
    Delegates,
    Edit,
    Failing,
    NewCell,
    Operators,
)


def clamp(*values: tuple[str, str]) -> Attribute:
    return Attribute(ATTRIBUTES, "CLAMP", "table.max", values, more=False)


def test_values_of_a_cell_are_no_part_of_the_difference() -> None:
    one, other = clamp(("6", "2")), clamp(("6", "1"))
    assert {one, other} == {one}
    assert one.key == other.key
    assert one.own != other.own
    assert (one.line, one.title) == ("CLAMP.table.max: 6 -> 2", "max 6 -> 2")
    assert clamp(("6", "2")).of_any_operator() == Attribute(ATTRIBUTES, "", "max", (), more=False)


@pytest.mark.parametrize(
    ("edit", "line", "entry"),
    [
        (Failing("fails", "lower: E: no"), "fails: lower: E: no", ("lower: E: no", "")),
        (
            Failing("differently", "run: E: no", "lower: E: no"),
            "fails differently: run: E: no: was lower: E: no",
            ("run: E: no", "was lower: E: no"),
        ),
        (NewCell("new", "", "golden"), "no golden", ("no golden", "")),
        (Operators(OPERATORS, "CAST", gained=True, more=2), "CAST gained: +2", ("CAST gained", "+2")),
        (
            Operators("taken", "aten.add.Tensor", gained=False, more=-1),
            "no longer left to portable kernels: aten.add.Tensor: -1",
            ("aten.add.Tensor", "-1"),
        ),
        (Delegates("delegates", -1, 3, 2), "fewer delegates: 3 -> 2 delegates", ("3 -> 2 delegates", "")),
        (
            Constants(
                CONSTANTS, "RESCALE", "input 1", "INT8", (("INT8[1]", "11", "8"), ("", "2", "3")), more=True
            ),
            "constants with different values, RESCALE input 1 INT8: INT8[1] 11 -> 8, 2 -> 3, …",
            ("RESCALE input 1 INT8", "INT8[1] 11 -> 8, 2 -> 3, …"),
        ),
        (
            Constants(ATTRIBUTES, "ADD", "input 1", "INT8", (("", 3, 4),)),
            "ADD input 1 INT8: 3 -> 4 constants",
            ("ADD input 1 INT8", "3 -> 4 constants"),
        ),
    ],
)
def test_a_difference_is_stated_once(edit: Edit, line: str, entry: tuple[str, str]) -> None:
    assert edit.line == line
    assert edit.entry == entry
    assert edit.kind in KINDS
    # A cause has a digest of it.
    assert json.dumps(edit.key)
