"""From one release to another: one cause is one entry, failures come first, names and numbers are no change."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import ERROR, main
from executorch_goldens.diff.difference import of_inventories
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.record import Record
from executorch_goldens.words.drift import Drift, inventories
from tests import GOLDENS
from tests.support.making import with_texts
from tests.support.screens import screen

OLD, NEW = "1.1.0", "1.5.1"


def tosa(*operators: str, weight: str = "1 2", dtype: str = "INT8", names: str = "") -> str:
    """Return a payload's text: a chain of operators, the first with a constant."""
    lines = ["tosa 100 bytes", "graph main/main", "  input x: INT8[2]", f"  output y{names}: INT8[2]"]
    lines += [
        f"  value w{names}: {dtype}[2]",
        f"    sha256 {weight.replace(' ', '')}",
        f"    values {weight}",
    ]
    for index, operator in enumerate(operators):
        kind, _, axis = operator.partition(" ")
        lines += [f"  operator {kind}", "    input x", f"    input w{names}"][: 3 if index == 0 else 2]
        lines += [f"    output y{names}: INT8[2]", *([f"    axis = {axis}"] if axis else [])]
    return "\n".join(lines) + "\n"


def write(root: Path, version: str, cell: str, size: int = 100, **files: str) -> None:
    texts = dict(files)
    if "failure" not in files:
        texts.setdefault("graph", "")
    sections = {name.replace("_tosa", ".tosa"): text for name, text in texts.items()}
    facts = {"variations": "seed0-heap0 seed4-heap1", "pte": f"{size} bytes sha256 0"}
    target, _, case = cell.partition("/")
    golden.write(golden.file_of(root / version, Cell(target, case)), Record(facts, sections))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of goldens in a folder that states no known defects."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def differences(old: Inventory, new: Inventory) -> list[tuple[str, str, str]]:
    """Return the kind of each difference, what differs, and what the cell shows of it."""
    return [(edit.kind, *edit.entry) for edit in of_inventories(old, new)]


def entries(root: Path) -> list[tuple[str, str, list[str]]]:
    drift = Drift.between(root, OLD, NEW)
    return [(entry.kind, entry.what, [str(cell) for cell in entry.cells]) for entry in drift.entries]


FAILURE = "stage: lower\ntype: KeyError\npass: -\nfunction: f\nmessage: gone\n"


def test_names_alone_are_no_change(root: Path) -> None:
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=tosa("ADD"))
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=tosa("ADD", names="_1"))
    assert entries(root) == []
    assert Drift.between(root, OLD, NEW).same == [Cell("tosa-fp", "a")]


def test_one_cause_in_many_cells_is_one_entry(root: Path) -> None:
    for case in ("a", "b", "c"):
        write(root, OLD, f"tosa-fp/{case}", delegate_0_tosa=tosa("ADD", "RESHAPE", "TABLE"))
        write(root, NEW, f"tosa-fp/{case}", delegate_0_tosa=tosa("ADD"))
    cells = ["tosa-fp/a", "tosa-fp/b", "tosa-fp/c"]
    assert entries(root) == [("operators", "RESHAPE lost; TABLE lost", cells)]


def shown(root: Path) -> str:
    return screen(Drift.between(root, OLD, NEW).markdown())


def test_what_begins_to_fail_stands_first(root: Path, snapshot: SnapshotAssertion) -> None:
    later = FAILURE.replace("gone", "lost")
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=tosa("ADD"))
    write(root, NEW, "tosa-fp/a", failure=FAILURE)
    write(root, OLD, "tosa-fp/b", failure=FAILURE)
    write(root, NEW, "tosa-fp/b", delegate_0_tosa=tosa("ADD"))
    write(root, OLD, "tosa-fp/c", delegate_0_tosa=tosa("ADD"))
    write(root, NEW, "tosa-fp/c", delegate_0_tosa=tosa("SUB"))
    # What failed before with other words does not newly fail.
    write(root, OLD, "tosa-fp/d", failure=FAILURE)
    write(root, NEW, "tosa-fp/d", failure=later)
    assert shown(root) == snapshot


def test_constants_and_attributes_are_reported_with_their_use_and_values(
    root: Path, snapshot: SnapshotAssertion
) -> None:
    shaped = tosa("ADD").replace(": INT8[2]\n    sha", ": INT8[1,2]\n    sha")
    changes = {
        "value": (tosa("ADD", weight="1 2"), tosa("ADD", weight="1 3")),
        "shape": (
            tosa("RESHAPE", weight="1 2", dtype="SHAPE"),
            tosa("RESHAPE", weight="2 1", dtype="SHAPE"),
        ),
        "absent": (tosa("ADD 1", "ADD 2"), tosa("ADD 1", "ADD")),
        "other-shape": (tosa("ADD"), shaped),
    }
    for case, (old, new) in changes.items():
        write(root, OLD, f"tosa-fp/{case}", delegate_0_tosa=old)
        write(root, NEW, f"tosa-fp/{case}", delegate_0_tosa=new)
    assert shown(root) == snapshot


def test_a_value_is_reported_beside_a_shape(root: Path) -> None:
    one, other = tosa("ADD", weight="1 2"), tosa("ADD", weight="1 5")
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=one, delegate_1_tosa=tosa("ADD", weight="7"))
    shaped = tosa("ADD", weight="7").replace(": INT8[2]\n    sha", ": INT8[2,2]\n    sha")
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=other, delegate_1_tosa=shaped)
    old, new = (inventories(root / version, {})[Cell("tosa-fp", "a")] for version in (OLD, NEW))
    assert differences(old, new) == [
        ("attributes", "ADD input 1 INT8", "INT8[2] -> INT8[2,2]"),
        ("constants", "ADD input 1 INT8", "INT8[2] 2 -> 5"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ((11, 12, 50), (8, 9, 53), "11 -> 8, 12 -> 9, 50 -> 53"),
        # A number that another place had before, or has now.
        ((9, 12, 50), (6, 9, 12), "9 -> 6, 12 -> 9, 50 -> 12"),
        ((-5, 12, 50), (50, -5, 9), "-5 -> 50, 12 -> -5, 50 -> 9"),
    ],
)
@pytest.mark.parametrize("rename", [False, True])
def test_constants_are_paired_by_their_place_in_the_graph(
    before: tuple[int, ...], after: tuple[int, ...], shown: str, rename: bool
) -> None:
    record = golden.read(GOLDENS / "1.5.1" / "tosa-int" / "matrix-products.txt")
    name, places = "delegate_0.tosa", ("_1", "_4", "_9")

    def zero_points(values: tuple[int, ...]) -> str:
        text = record.sections[name]
        for place, value in zip(places, values, strict=True):
            held = rf"(value tosa_rescale_default{place}_output_zp: INT8\[1\]\n    sha256 )\w+(\n    values )-?\d+"
            text, found = re.subn(held, rf"\g<1>{hash_of(value)}\g<2>{value}", text)
            assert found == 1
        return text

    def hash_of(value: int) -> str:
        return hashlib.sha256(value.to_bytes(1, signed=True)).hexdigest()

    changed = zero_points(after)
    if rename:
        changed = re.sub(
            r"tosa_rescale_default_(\d)_",
            lambda found: f"tosa_rescale_default_{90 - int(found[1])}_",
            changed,
        )
    old, new = (with_texts(record, {name: text}).inventory for text in (zero_points(before), changed))
    assert differences(old, new) == [("constants", "RESCALE input 4 INT8", f"INT8[1] {shown}")]


def test_attributes_are_paired_by_the_place_of_their_operator() -> None:
    record = golden.read(GOLDENS / "1.5.1" / "tosa-int" / "inverted-residual.txt")
    name, perms = "delegate_0.tosa", ("[0, 2, 3, 1]", "[0, 3, 1, 2]")

    def permuted(*others: str) -> Inventory:
        text = record.sections[name]
        for had, has in zip(perms, others, strict=True):
            assert text.count(f"perms = {had}") == 1
            text = text.replace(f"perms = {had}", f"perms = {has} ")
        return with_texts(record, {name: text.replace("] \n", "]\n")}).inventory

    # Sorted, the values before and after would be paired crosswise.
    (found,) = differences(permuted("[0, 1, 2, 3]", "[0, 3, 1, 2]"), permuted("[3, 2, 1, 0]", "[0, 1, 3, 2]"))
    shown = "[0, 1, 2, 3] -> [3, 2, 1, 0], [0, 3, 1, 2] -> [0, 1, 3, 2]"
    assert found == ("attributes", f"TRANSPOSE.perms: {shown}", "")


def test_a_constant_that_is_computed_now_is_reported(root: Path, snapshot: SnapshotAssertion) -> None:
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=tosa("ADD"))
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=tosa("ADD").replace("    input w\n", "    input x\n"))
    assert shown(root) == snapshot


#: A payload with two inputs, each read by an operator.
WIRED = (
    "tosa 100 bytes\ngraph main/main\n  input a: INT8[2]\n  input b: INT8[2]\n  output y: INT8[2]\n"
    "  operator NEGATE\n    input a\n    output n: INT8[2]\n"
    "  operator SUB\n    input n\n    input b\n    output y: INT8[2]\n"
)


@pytest.mark.parametrize(
    "other",
    [
        WIRED.replace("a: ", "_").replace("b: ", "a: ").replace("_", "b: "),
        WIRED.replace("    input b\n", "    input n\n"),
    ],
    ids=["inputs", "operands"],
)
def test_operators_connected_differently_are_reported(
    root: Path, other: str, snapshot: SnapshotAssertion
) -> None:
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=WIRED)
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=other)
    ((kind, what, cells),) = entries(root)
    assert (kind, cells) == ("wiring", ["tosa-fp/a"])
    assert screen(what) == snapshot


def test_a_field_that_a_newer_format_adds_is_no_other_connection(root: Path) -> None:
    value = "  value b: INT8[2]\n"
    older = WIRED.replace("  operator NEGATE", f"{value}  operator NEGATE")
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=older)
    newer = older.replace(value, f"{value}    scale_type = UNKNOWN\n    scale_data = 0x\n")
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=newer)
    text = "fields that only one of the formats has: scale_data, scale_type"
    assert entries(root) == [("attributes", text, ["tosa-fp/a"])]


def test_a_different_serializer_is_a_figure_and_no_change(root: Path, snapshot: SnapshotAssertion) -> None:
    one, other = (tosa("ADD").replace("graph", f"version.minor = {at}\ngraph", 1) for at in (0, 1))
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=one)
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=other)
    assert entries(root) == []
    assert shown(root) == snapshot


def test_an_attribute_and_a_split_are_reported(root: Path) -> None:
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=tosa("REDUCE_SUM 1", "ADD"))
    write(root, NEW, "tosa-fp/a", delegate_0_tosa=tosa("REDUCE_SUM 2"), delegate_1_tosa=tosa("ADD"))
    found = entries(root)
    # The first operator of each delegate has a constant (`tosa`).
    assert ("attributes", "ADD input 1 INT8; REDUCE_SUM.axis: 1 -> 2", ["tosa-fp/a"]) in found
    assert ("delegates", "1 -> 2 delegates", ["tosa-fp/a"]) in found


def test_a_delegate_that_stopped_lowering_has_a_section_of_its_own(root: Path) -> None:
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=tosa("ADD"))
    write(root, NEW, "tosa-fp/a")
    assert entries(root)[0] == ("gone", "1 -> 0 delegates", ["tosa-fp/a"])


def test_an_operator_left_outside_is_reported(root: Path) -> None:
    node = "    %a = call_function[target=executorch.exir.dialects.edge._ops.aten.add.Tensor](args = ())\n"
    write(root, OLD, "tosa-fp/a", graph="")
    write(root, NEW, "tosa-fp/a", graph=node)
    assert entries(root) == [("outside", "aten.add.Tensor", ["tosa-fp/a"])]


def test_cells_of_only_one_release_are_reported_last(root: Path) -> None:
    write(root, OLD, "tosa-fp/a", delegate_0_tosa=tosa("ADD"))
    write(root, NEW, "tosa-fp/b", delegate_0_tosa=tosa("ADD"))
    assert entries(root) == [
        ("cells", f"only on {OLD}", ["tosa-fp/a"]),
        ("cells", f"only on {NEW}", ["tosa-fp/b"]),
    ]


def test_two_failures_of_one_cause_are_no_change() -> None:
    assert differences(Inventory("lower: KeyError: gone"), Inventory("lower: KeyError: gone")) == []


def test_a_failure_with_different_numbers_is_no_change() -> None:
    old, new = (
        Inventory(
            f"undecodable: values[{each}].scalar_type: byte {each}80 (0x{each}e2): ScalarType has no value 9"
        )
        for each in (1, 2)
    )
    assert differences(old, new) == []
    assert differences(old, Inventory("undecodable: values[1].scalar_type: cut off"))


def test_a_failure_that_another_sample_shows_is_no_change() -> None:
    old, new = (
        Inventory(f"imprecise: may move output 0 ({sample}) by 0.11") for sample in ("drawn", "extremes")
    )
    assert differences(old, new) == []
    assert differences(old, Inventory("imprecise: may move the state (drawn) by 0.11"))


def test_known_defects_count_as_failures() -> None:
    defects = {name: str(each) for name, each in Decisions.of_root(GOLDENS, "1.4.1").defects.items()}
    assert inventories(GOLDENS / "1.4.1", defects, "tosa-fp/identity-permute") == {
        Cell("tosa-fp", "identity-permute"): Inventory(
            "corrupt: the delegate declares its input as an output that no operator writes (#22436)"
        )
    }


@pytest.mark.parametrize("pair", [("1.3.1", "9.9.9"), ("9.9.9", "1.3.1")])
def test_a_release_without_goldens_is_one_line(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *pair]) == ERROR
    assert "no goldens of '9.9.9'" in capsys.readouterr().err


def test_what_most_cells_show_stands_first(root: Path) -> None:
    for case, lost in (("a", "SUB"), ("b", "TABLE"), ("c", "TABLE")):
        write(root, OLD, f"tosa-fp/{case}", delegate_0_tosa=tosa("ADD", lost))
        write(root, NEW, f"tosa-fp/{case}", delegate_0_tosa=tosa("ADD"))
    assert [what for _, what, _ in entries(root)] == ["TABLE lost", "SUB lost"]


def test_a_different_numbering_is_no_change(root: Path) -> None:
    numbered = tosa("ADD") + "    debug_handle = 7\n"
    write(root, OLD, "xnnpack-fp32/a", delegate_0_tosa=numbered)
    write(root, NEW, "xnnpack-fp32/a", delegate_0_tosa=numbered.replace("7", "9"))
    assert entries(root) == []
