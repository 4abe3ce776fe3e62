"""The core of a zoo: the reach of goldens, the cover, the committed cores, and runs of the core tier."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.goldens import golden
from executorch_goldens.judging import known
from executorch_goldens.judging.updating import Updating
from executorch_goldens.running import core
from executorch_goldens.running.options import CORE, FULL
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from executorch_goldens.sweep.seconds import Seconds
from lab.__main__ import main
from lab.core import computing, reading
from lab.core.command import computed
from lab.coverage import visits
from lab.coverage.visits import SHOWN_VALUES, PassRow
from tests import GOLDENS
from tests.runs.test_bad_input import options

MATRIX = releases.load()
VERSIONS = list(MATRIX.releases)

A, B, C, D = (Cell("tosa-fp", name) for name in "abcd")


# The cover


def test_a_cell_that_alone_reaches_something_is_taken_before_one_that_reaches_more() -> None:
    wanted = {"one": {A}, "two": {A, B}, "three": {B, C}, "four": {B, C}}
    assert computing.cover(wanted, [], Seconds({})) == {A: ["one", "two"], B: ["four", "three"]}


def test_ties_go_by_name_whatever_the_order_they_come_in() -> None:
    for cells in ((C, B, D), (D, C, B), (B, D, C)):
        assert computing.cover({"one": list(cells)}, [], Seconds({})) == {B: ["one"]}


def test_cells_that_must_be_in_the_core_come_first_and_count() -> None:
    assert computing.cover({"one": {A, B}}, [D, B], Seconds({})) == {D: [], B: ["one"]}


def test_what_is_cheap_is_taken_before_what_is_dear() -> None:
    wanted = {"one": {A, B}, "two": {A, C}}
    assert computing.cover(wanted, [], Seconds({A: 3.0, B: 2.0, C: 2.0})) == {A: ["one", "two"]}
    assert computing.cover(wanted, [], Seconds({A: 5.0, B: 2.0, C: 2.0})) == {B: ["one"], C: ["two"]}


def test_a_cell_that_later_ones_make_needless_goes_again() -> None:
    # By what a second gives, D is taken first; A and B are needed for the rest, and reach what D does.
    wanted = {"one": {A, D}, "two": {B, D}, "three": {A, C}, "four": {A, C}, "five": {B, C}, "six": {B, C}}
    seconds = Seconds({A: 3.0, B: 3.0, C: 9.0, D: 1.0})
    assert computing.cover(wanted, [], seconds) == {A: ["four", "one", "three"], B: ["five", "six", "two"]}


# What a golden reaches


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A root with two goldens of 1.4.1: a TOSA delegate and an XNNPACK one."""
    for cell in ("tosa-int/linear", "xnnpack-int8/linear"):
        shutil.copytree(GOLDENS / "1.4.1" / cell, tmp_path / "1.4.1" / cell)
    return tmp_path


LINEAR = [Cell("tosa-int", "linear"), Cell("xnnpack-int8", "linear")]


def test_targets_passes_operators_and_attributes_are_reached(some: Path) -> None:
    tosa, xnnpack = LINEAR
    found = reading.reached(some / "1.4.1", LINEAR)
    assert found["target tosa-int"] == {tosa}
    assert found["pass arm backend: FuseConstantArgsPass"] == {tosa}
    assert found["pass exir: OpReplacePass"] == {tosa, xnnpack}
    assert found["operator tosa: CONST"] == {tosa}
    assert found["attribute tosa: CONV2D acc_type = INT32"] == {tosa}
    assert found["attribute xnnpack: XNNFullyConnected flags = 0"] == {xnnpack}
    assert not [what for what in found if "stage" in what or re.search("debug_handle =", what)]


def test_of_an_attribute_with_many_values_it_counts_that_it_is_there(some: Path) -> None:
    (delegate,) = (some / "1.4.1" / "tosa-int" / "linear").glob("delegate_*")
    text = "graph main\n" + "".join(f"  operator CONCAT\n    axis = {n}\n" for n in range(SHOWN_VALUES))
    delegate.write_text(text)
    few = reading.reached(some / "1.4.1", LINEAR)
    assert "attribute tosa: CONCAT axis = 3" in few
    assert "attribute tosa: CONCAT axis" not in few
    delegate.write_text(f"{text}  operator CONCAT\n    axis = {SHOWN_VALUES}\n")
    many = reading.reached(some / "1.4.1", LINEAR)
    assert [what for what in many if "CONCAT axis" in what] == ["attribute tosa: CONCAT axis"]


def test_of_a_constant_in_the_place_of_a_value_its_type_counts(some: Path) -> None:
    (delegate,) = (some / "1.4.1" / "tosa-int" / "linear").glob("delegate_*")
    delegate.write_text("graph main\n  operator CLAMP\n    min_val = INT8[] -5\n    max_val = INT8[] 9\n")
    found = reading.reached(some / "1.4.1", LINEAR)
    assert {"attribute tosa: CLAMP min_val = INT8[]", "attribute tosa: CLAMP max_val = INT8[]"} <= set(found)


def test_coverage_names_cells_for_what_no_golden_tells(some: Path) -> None:
    def coverage(cell: Cell) -> visits.Reached:
        passes = (PassRow("exir", "NewPass", 9, 1, LINEAR[0]), PassRow("exir", "OldPass", 9, 0, None))
        return visits.Reached(passes, {}, {"tosa aten.add.Tensor": {LINEAR[0], cell}}, {})

    found = reading.reached(some / "1.4.1", LINEAR, coverage(LINEAR[1]))
    assert found["visitor tosa: aten.add.Tensor"] == set(LINEAR)
    assert found["pass exir: NewPass"] == {LINEAR[0]}
    assert "pass exir: OldPass" not in found
    with pytest.raises(core.CoreError, match="tosa-int/gone reaches visitor tosa: aten"):
        reading.reached(some / "1.4.1", LINEAR, coverage(Cell("tosa-int", "gone")))


# The committed cores


@functools.cache
def wanted(version: str) -> reading.Reached:
    cells = load_cells(("models",), MATRIX.release(version))
    return reading.reached(GOLDENS / version, cells, visits.Reached.read(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_committed_core_reaches_all_that_the_zoo_reaches(version: str) -> None:
    committed = set(core.read(GOLDENS / version / core.FILE))
    missed = [what for what, cells in wanted(version).items() if not committed & set(cells)]
    assert not missed, f"run: {core.UPDATE}"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_committed_core_is_the_cover_of_what_is_committed(version: str) -> None:
    committed = (GOLDENS / version / core.FILE).read_text(encoding="utf-8")
    assert committed == computed(GOLDENS, version), f"run: {core.UPDATE}"


_SHIFT = "tosa: ARITHMETIC_RIGHT_SHIFT"
_UNITS = {
    *("xnnpack: XNNClamp output_min_max.output_max", "xnnpack: XNNClamp output_min_max.output_min"),
    "xnnpack: XNNLeakyReLU negative_slope",
    *(f"xnnpack: {unit}" for unit in ("XNNLeakyReLU", "XNNPReLU")),
    *(
        f"xnnpack: {unit} {what}"
        for unit in ("XNNLeakyReLU", "XNNPReLU")
        for what in ("debug_handle", "flags", "output_min_max")
    ),
}
_SHIFTS = {_SHIFT, f"{_SHIFT} round", "tosa: LOGICAL_LEFT_SHIFT"}
#: Operators, and values of attributes, that only cells without a golden have, which are known defects.
OF_KNOWN_DEFECTS = {
    "1.1.0": {
        *("tosa: REDUCE_ANY axis", "tosa: LOGICAL_OR", "tosa: LOGICAL_XOR", "tosa: GATHER"),
        *(_SHIFTS | _UNITS),
    },
    "1.2.0": {
        *("tosa: TRANSPOSE_CONV2D out_pad", "tosa: TRANSPOSE_CONV2D stride", "tosa: BITWISE_AND"),
        "tosa: TRANSPOSE_CONV2D acc_type",
        *(_SHIFTS | _UNITS),
    },
    "1.3.1": _SHIFTS | _UNITS,
    "1.4.1": {f"{_SHIFT} round", "tosa: ARGMAX", "tosa: ARGMAX axis", "tosa: ARGMAX nan_mode"},
    "1.5.1": {f"{_SHIFT} round"},
}


def serialized(version: str) -> dict[str, int]:
    """Return the operators that coverage has, with 0, and their attributes, with the number of values they had."""
    found = {}
    for kind, operators in visits.Reached.read(version).operators.items():
        for operator, attributes in operators.items():
            found[f"{kind}: {operator}"] = 0
            for name, seen in re.findall(r"(\S+): (.*?)(?:; |$)", attributes):
                counted = re.fullmatch(r"(\d+) values", seen)
                # A comma in brackets is one of a value.
                apart = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", seen)).count(", ") + 1
                found[f"{kind}: {operator} {name}"] = int(counted[1]) if counted else apart
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_goldens_and_coverage_tell_the_same_of_what_the_zoo_reaches(version: str) -> None:
    coverage = visits.Reached.read(version)
    named = {f"pass {name}" for name, _ in coverage.examples()}
    named |= {f"visitor {visitor.replace(' ', ': ', 1)}" for visitor in coverage.visited}
    reached = wanted(version)
    assert named == {what for what in reached if what.startswith(("pass ", "visitor "))}
    found: dict[str, int] = {
        what.removeprefix("operator "): 0 for what in reached if what.startswith("operator ")
    }
    for what in reached:
        attribute = re.fullmatch(r"attribute (\w+: \w+ [^ ]+)(?: = .*)?", what)
        if attribute:
            found[attribute[1]] = found.get(attribute[1], 0) + 1
    differ = {
        what
        for what, values in serialized(version).items()
        if found.get(what) != (values if values <= SHOWN_VALUES and "debug_handle" not in what else 1)
    }
    assert found.keys() <= serialized(version).keys()
    assert differ == OF_KNOWN_DEFECTS[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_only_known_defects_reach_is_in_the_core_as_well(version: str) -> None:
    for cell in computing.DEFECTS[version]:
        assert str(cell) in known.read(GOLDENS)[version]
        assert not golden.directory(GOLDENS / version, cell).exists()
        assert cell in core.read(GOLDENS / version / core.FILE)


def test_a_golden_that_reaches_something_new_asks_for_the_command(
    some: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["core", "--release", "1.4.1", "--goldens", str(some)]
    assert main([*command, "--update"]) == SAME
    assert main(command) == SAME
    assert "core.txt: as committed: " in capsys.readouterr().out
    trace = some / "1.4.1" / "tosa-int" / "linear" / golden.TRACE
    trace.write_text(f"{trace.read_text()}arm backend: NewPass 0123456789ab\n")
    assert main(command) == DIFFERENT
    printed = capsys.readouterr().out
    assert "core.txt: differs: " in printed
    assert f"accept: {core.UPDATE}" in printed


@pytest.mark.parametrize("damage", ["link", "bytes", "head", "cell"])
def test_a_damaged_list_of_visitors_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    monkeypatch.setattr(visits, "REACHED", tmp_path)
    path = visits.cells_of("1.4.1")
    texts = {"bytes": b"\xff", "head": b"nothing\n", "cell": b"cell\tvisitors\nnothing\ttosa a\n"}
    if damage == "link":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(texts[damage])
    assert main(["core", "--release", "1.4.1"]) == 2
    assert f"bring it back with 'git checkout -- {path}'" in capsys.readouterr().err


# Runs


@pytest.mark.parametrize(
    ("committed", "asked", "tier"),
    [
        (True, {}, CORE),
        (False, {}, FULL),
        (True, {"tier": FULL}, FULL),
        (True, {"cells": ("tosa-fp/*",)}, FULL),
        (True, {"update": Updating(new=True)}, FULL),
        (True, {"cells": ("tosa-fp/*",), "tier": CORE}, CORE),
    ],
    ids=str,
)
def test_a_run_takes_the_core_unless_it_says_which_cells_or_writes(
    tmp_path: Path, committed: bool, asked: dict[str, object], tier: str
) -> None:
    if committed:
        (tmp_path / core.FILE).write_text("")
    assert core.tier(options(**asked), tmp_path) == tier


def test_a_command_takes_a_tier_but_patterns_go_over_it(tmp_path: Path) -> None:
    (tmp_path / core.FILE).write_text(f"{B}\n{A}\n")
    assert core.chosen((A, B, C), None, CORE, tmp_path) == (B, A)
    assert core.chosen((A, B, C), ["*/c", "*/a"], CORE, tmp_path) == [A, C]
    assert core.chosen((A, B, C), None, FULL, tmp_path) == [A, B, C]


def test_a_cell_without_a_golden_is_checked_unless_a_known_defect_says_why(tmp_path: Path) -> None:
    (tmp_path / core.FILE).write_text("# A head.\ntosa-fp/a  target tosa-fp\n")
    for cell in (A, B):
        golden.directory(tmp_path, cell).mkdir(parents=True)
    assert core.within(tmp_path, (A, B, C, D), (A, B, C, D), {str(D)}) == {A, C}
    assert core.within(tmp_path, (B, C), (A, B, C, D), {str(D)}) == {C}


@pytest.mark.parametrize(
    ("text", "said"),
    [("tosa-fp/gone\n", "names tosa-fp/gone, and there is no such cell"), ("tosa-fp\n", "no line of a core")],
    ids=["gone", "damaged"],
)
def test_a_core_that_does_not_fit_the_zoo_is_an_error_with_the_command(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / core.FILE).write_text(text)
    with pytest.raises(core.CoreError, match=f"{said}.*{core.UPDATE}"):
        core.within(tmp_path, (A,), (A,), ())
