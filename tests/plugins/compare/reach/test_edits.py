"""Edits of a toolchain's Python: which functions and tables they are, which cells they ask for, what was reached."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens_plugins.compare.asked import OVER, WRONG, Asked
from executorch_goldens_plugins.compare.reach.answer import Answer, answer
from executorch_goldens_plugins.compare.reach.choice import BEGINNING, FEW_WRONG, around, choose, choose_pass
from executorch_goldens_plugins.compare.reach.edits import CodeEdit, Edits, between
from tests.plugins.compare.reach.packages import (
    FILE,
    FOLD,
    INT16,
    LIKE,
    OTHER,
    PLAIN,
    RAN,
    TORCHAO,
    USERS,
    UTILS,
    known,
    packages,
)
from tests.support.screens import screen


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return packages(tmp_path / "base")


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return tmp_path / "head"


def chosen(found: Edits, base: Path, budget: float = 1000.0) -> list[Cell]:
    """Return the cells that are asked for, in order."""
    made = known(base)
    return [made.cells[number].cell for number in choose(found, base, made, budget, 1).cells]


def one(found: Edits) -> CodeEdit:
    (edit,) = found.every
    return edit


def test_an_edited_line_asks_for_the_cells_that_run_it(base: Path, head: Path) -> None:
    found = between(base, packages(head, FOLD.replace("self.half(scale)", "self.half(scale) + 1")))
    edit = one(found)
    assert (edit.file, edit.function) == (FILE, "Fold.call")
    assert [each.first for each in edit.base] == [each.first for each in edit.head] == [15]
    assert set(chosen(found, base)) == {USERS, INT16}


def test_a_new_statement_asks_for_the_cells_that_run_the_one_before_it(base: Path, head: Path) -> None:
    text = FOLD.replace("self.half(scale)\n", "self.half(scale)\n            scale += 1\n")
    edit = one(between(base, packages(head, text)))
    assert ([each.first for each in edit.base], [each.first for each in edit.head]) == ([15], [16])


@pytest.mark.parametrize("further", ["if not node.args:\n            return None", "node = 1"])
def test_a_statement_behind_a_guard_asks_for_the_cells_that_pass_the_guard(
    base: Path, head: Path, further: str
) -> None:
    guard = "raise ValueError(node)\n"
    found = between(base, packages(head, FOLD.replace(guard, f"{guard}        {further}\n")))
    assert [each.first for each in one(found).base] == [13]
    assert set(chosen(found, base)) == {*RAN}
    # The other way, what is lost behind a guard was where the next statement is.
    assert [each.first for each in one(between(head, base)).head] == [13]


@pytest.mark.parametrize(
    "text",
    [
        FOLD.replace("class Fold:", "def first(node):\n    return node.meta\n\n\nclass Fold:"),
        FOLD.replace('"""A pass."""\n', '"""A pass."""\n# A comment.\n'),
    ],
    ids=["only the rest moved", "comment"],
)
def test_what_only_moves_is_no_edit(base: Path, head: Path, text: str) -> None:
    found = between(base, packages(head, text))
    assert [edit.function for edit in found.every if edit.function != "first"] == []


def test_a_function_that_moved_to_another_file_is_no_edit_and_its_cells_are_found(
    base: Path, head: Path
) -> None:
    half = "    def half(self, scale):\n        return scale / 2\n"
    assert half in FOLD
    packages(head, FOLD.replace(half, ""))
    (head / OTHER).write_text(f"class Halves:\n{half}")
    found = between(base, head)
    assert [edit.function for edit in found.every if edit.function] == []


@pytest.mark.parametrize("stays", [False, True])
def test_a_renamed_file_is_no_edit_whether_or_not_the_former_one_stays(
    base: Path, head: Path, stays: bool
) -> None:
    if stays:
        packages(head)
    packages(head, f"import os\n{FOLD}", file=OTHER)
    for side, file in ((base, FILE), (head, OTHER)):
        (side / "executorch" / "importing.py").write_text(f"from .{Path(file).stem} import Fold\n")
    found = between(base, head)
    assert found.every == ()
    assert OTHER in found.files


@pytest.mark.parametrize("stays", [True, False])
def test_a_renamed_file_that_is_edited_asks_for_the_cells_of_the_former_one(
    base: Path, head: Path, stays: bool
) -> None:
    if stays:
        packages(head)
    found = between(base, packages(head, FOLD.replace("scale / 2", "scale / 4"), file=OTHER))
    edit = one(found)
    assert (edit.file, edit.former, edit.function) == (OTHER, FILE, "Fold.half")
    assert set(chosen(found, base)) == {USERS, INT16}


def test_a_table_of_a_renamed_file_asks_for_the_cells_of_the_former_one(base: Path, head: Path) -> None:
    found = between(base, packages(packages(head), FOLD.replace("127", "255"), file=OTHER))
    assert set(chosen(found, base)) == {*RAN}


def test_a_new_file_that_has_less_than_half_of_another_is_a_new_one(base: Path, head: Path) -> None:
    text = FOLD.replace("scale / 2", "scale / 4").replace("node.rank > 4", "node.rank > 5")
    found = between(base, packages(packages(head), text, file=OTHER))
    assert {(edit.file, edit.former) for edit in found.every} == {(OTHER, "")}


def test_a_new_function_asks_for_the_cells_of_its_class(base: Path, head: Path) -> None:
    text = FOLD.replace(
        "    def half(", "    def third(self, scale):\n        return scale / 3\n\n    def half("
    )
    found = between(base, packages(head, text))
    assert one(found).function == "Fold.third"
    assert set(chosen(found, base)) == {*RAN}


def test_a_new_file_that_nothing_reaches_asks_for_no_cell(base: Path, head: Path) -> None:
    packages(head)
    (head / OTHER).write_text("def added(node):\n    return node.meta\n")
    found = between(base, head)
    assert one(found).function == "added"
    assert choose(found, base, known(base), 1000.0, 1).unmapped == (f"{OTHER}: added",)


def test_a_deleted_function_asks_for_the_cells_that_ran_it(base: Path, head: Path) -> None:
    found = between(
        base, packages(head, FOLD.replace("    def half(self, scale):\n        return scale / 2\n", ""))
    )
    assert (one(found).function, one(found).head) == ("Fold.half", ())
    assert set(chosen(found, base)) == {USERS, INT16}


def test_a_table_of_a_module_asks_for_the_cells_of_the_functions_that_use_it(base: Path, head: Path) -> None:
    found = between(base, packages(head, FOLD.replace("127", "126")))
    edit = one(found)
    assert (edit.function, edit.users) == ("", ((FILE, "Fold.call"),))
    assert set(chosen(found, base)) == {*RAN}


def test_a_table_that_a_table_is_made_of_asks_for_the_functions_that_use_either(
    base: Path, head: Path
) -> None:
    made = "PARTS = (1, 2)\nWHOLE = {part: None for part in PARTS}\nfor part in PARTS:\n    WHOLE[part] = 0\n"
    user = "\n\nfrom executorch.other import WHOLE\nSIZES = len(WHOLE)\n\n\ndef sized():\n    return SIZES\n"
    for folder, text in ((base, made), (head, made.replace("(1, 2)", "(1, 2, 3)"))):
        packages(folder, FOLD + user)
        (folder / OTHER).write_text(f"{text}\n\ndef used():\n    return WHOLE\n")
    edit = one(between(base, head))
    assert edit.users == ((FILE, "sized"), (OTHER, "used"))


def test_a_table_that_no_function_uses_is_not_reached(base: Path, head: Path) -> None:
    for folder, number in ((base, 1), (head, 2)):
        packages(folder)
        (folder / OTHER).write_text(f"import os\nUNUSED = {number}\n")
    assert answer(between(base, head), {}, head) == Answer(0, (f"{OTHER}:2",), 0)


def test_an_edit_of_torchao_asks_for_the_cells_that_run_it(base: Path, head: Path) -> None:
    found = between(base, packages(head, utils=UTILS.replace("round(value)", "int(value)")))
    assert one(found).file == TORCHAO
    assert set(chosen(found, base)) == {USERS, INT16}


def test_what_is_no_python_is_named(base: Path, head: Path) -> None:
    packages(head)
    (head / "executorch" / "schema.fbs").write_text("table T {}")
    found = between(base, head)
    assert (found.every, found.others) == ((), ("executorch/schema.fbs",))


def test_within_a_budget_unlike_cells_come_first_and_the_cheapest_of_them(base: Path, head: Path) -> None:
    found = between(base, packages(head, FOLD.replace("* node.scale", "/ node.scale")))
    # Each is exported on both sides.
    budget = BEGINNING + 2 * (1 + 3)
    assert chosen(found, base, budget) == [PLAIN, USERS]
    made = known(base)
    left = choose(found, base, made, budget, 1).left_out
    assert [made.cells[number].cell for number in left] == [LIKE, INT16]
    assert chosen(found, base)[-1] == LIKE


@pytest.mark.parametrize(
    ("now", "second"), [("utils.rounded(scale)", USERS), ("other(scale)", INT16)], ids=["known", "unknown"]
)
def test_what_the_difference_names_asks_for_the_cells_that_run_it(
    base: Path, head: Path, now: str, second: Cell
) -> None:
    found = between(base, packages(head, FOLD.replace("return scale\n", f"return {now}\n")))
    assert chosen(found, base)[:2] == [PLAIN, second]


def test_an_operator_that_the_difference_names_asks_for_its_models(base: Path, head: Path) -> None:
    called = Cell("tosa-int", "slice-tensor-0000")
    made = known(base, every=dict.fromkeys((PLAIN, INT16, called), RAN[PLAIN]))
    text = FOLD.replace("* node.scale", "* node.scale * (node.target == torch.ops.aten.slice.Tensor)")
    edits = between(base, packages(head, text))
    assert one(edits).operators == {"slice"}
    assert made.cells[choose(edits, base, made, 1000.0, 1).cells[1]].cell == called


def test_cells_that_are_not_right_on_the_base_come_last(base: Path, head: Path) -> None:
    made = known(base)
    cells = (msgspec.structs.replace(made.cells[0], is_wrong=True), *made.cells[1:])
    edits = between(base, packages(head, FOLD.replace("* node.scale", "/ node.scale")))
    for every, first in ((made.cells, PLAIN), (cells, LIKE)):
        found = choose(edits, base, msgspec.structs.replace(made, cells=every), BEGINNING + 1e6, 1)
        # All take less than what a first answer waits for.
        assert made.cells[found.cells[0]].cell == first
    assert [made.cells[number].cell for number in found.wrong] == [PLAIN]
    alone = tuple(msgspec.structs.replace(each, is_wrong=True) for each in made.cells)
    found = choose(edits, base, msgspec.structs.replace(made, cells=alone), BEGINNING + 1e6, 1)
    assert (len(found.cells), found.left_out, found.wrong) == (4, (), ())
    asked = Asked(
        (), head, edits, choose(edits, base, msgspec.structs.replace(made, cells=cells), 0.0, 1), made
    )
    assert [*asked.left_out.values()] == [WRONG] + [OVER] * 3


def test_cells_that_are_not_right_on_the_base_take_none_of_the_budget(base: Path, head: Path) -> None:
    made = known(base)
    cells = (msgspec.structs.replace(made.cells[0], is_wrong=True), *made.cells[1:])
    edits = between(base, packages(head, FOLD.replace("* node.scale", "/ node.scale")))
    # Enough for the one that is next, exported on both sides.
    found = choose(edits, base, msgspec.structs.replace(made, cells=cells), BEGINNING + 2 * 2, 1)
    assert [made.cells[number].cell for number in found.cells] == [LIKE]


def test_of_a_line_that_no_other_cell_runs_a_few_that_are_not_right_on_the_base_are_compared(
    base: Path, head: Path
) -> None:
    users = [Cell(target, "users") for target in ("tosa-fp", "tosa-int", "tosa-u55")]
    made = known(base, every={PLAIN: RAN[PLAIN], **dict.fromkeys(users, RAN[USERS])})
    cells = tuple(msgspec.structs.replace(each, is_wrong=each.cell in users) for each in made.cells)
    edits = between(base, packages(head, FOLD.replace("* node.scale", "/ node.scale")))
    found = choose(edits, base, msgspec.structs.replace(made, cells=cells), 1000.0, 1)
    assert [made.cells[number].cell for number in found.cells] == [PLAIN, *users[:FEW_WRONG]]
    assert [made.cells[number].cell for number in found.wrong] == users[FEW_WRONG:]


@pytest.mark.parametrize("edited", ["node.rank > 4", "* node.scale"])
def test_every_second_cell_runs_what_few_run_after_the_edit(base: Path, head: Path, edited: str) -> None:
    plain = [Cell(target, "plain") for target in ("tosa-fp", "tosa-int", "tosa-u55", "tosa-bf16")]
    made = known(base, every={**dict.fromkeys(plain, RAN[PLAIN]), INT16: RAN[INT16]})
    found = between(base, packages(head, FOLD.replace(edited, f"{edited} + 1")))
    cells = choose(found, base, made, BEGINNING + 2 * (1 + 5), 1).cells
    assert [made.cells[number].cell for number in cells] == [plain[0], INT16]


def test_every_second_cell_calls_a_method_of_what_all_construct(base: Path, head: Path) -> None:
    with_constructor = FOLD.replace(
        "scale / 2\n", "scale / 2\n\n    def __init__(self):\n        self.by = 2\n"
    )
    packages(base, with_constructor)
    plain = [Cell(target, "plain") for target in ("tosa-fp", "tosa-int", "tosa-u55", "tosa-bf16")]
    made = known(base, every={**dict.fromkeys(plain, (22,)), INT16: (19, 22)})
    found = between(base, packages(head, with_constructor.replace("by = 2", "by = 4")))
    cells = choose(found, base, made, BEGINNING + 2 * (1 + 5), 1).cells
    assert [made.cells[number].cell for number in cells] == [plain[0], INT16]


def test_a_first_answer_waits_for_no_dear_cell(base: Path, head: Path) -> None:
    found = between(base, packages(head, FOLD.replace("* node.scale", "/ node.scale")))
    orders = []
    for slower in (1.0, 2.0):
        made = known(base, slower)
        orders.append([made.cells[number].cell for number in choose(found, base, made, 1000.0, 1).cells])
    assert orders == [[PLAIN, USERS, INT16, LIKE], [PLAIN, LIKE, USERS, INT16]]


# What an answer speaks for


def test_cells_around_an_edit_that_none_reaches_run_its_function_unlike_ones_first(
    base: Path, head: Path
) -> None:
    edits = between(base, packages(head, FOLD.replace("ValueError(node)", "TypeError(node)")))
    made = known(base)
    assert [made.cells[number].cell for number in around(edits, made)] == [PLAIN, INT16, USERS, LIKE]


@pytest.mark.parametrize(
    ("file", "number"), [(FILE, 4), (f"{Path(FILE).parent}/new.py", 4), ("executorch/exir/new.py", 0)]
)
def test_else_they_reach_its_file_or_one_beside_it_the_cheapest_first(
    base: Path, file: str, number: int
) -> None:
    assert around(Edits((), (file,), ()), known(base)) == list(range(number))


def test_an_answer_counts_what_ran_and_names_what_did_not(
    base: Path, head: Path, snapshot: SnapshotAssertion
) -> None:
    text = FOLD.replace("rank > 4", "rank > 5").replace("ValueError(node)", "TypeError(node)")
    text = text.replace("scale / 2", "scale / 3").replace("127", "126")
    found = answer(between(base, packages(head, text)), {FILE: {11, 13}}, head)
    assert found == Answer(reached=2, unreached=(f"{FILE}:19",), raising=1)
    assert not found.is_void
    assert screen(found.line()) == snapshot


def test_an_answer_is_void_where_lines_could_run_and_none_did(base: Path, head: Path) -> None:
    found = between(base, packages(head, FOLD.replace("scale / 2", "scale / 3").replace("127", "126")))
    assert answer(found, {}, head).is_void
    raising = between(base, packages(head, FOLD.replace("ValueError(node)", "TypeError(node)")))
    assert answer(raising, {}, head) == Answer(0, (), 1)
    assert not answer(raising, {}, head).is_void


def test_a_pass_is_reached_where_a_statement_of_it_runs_that_others_do_not_run(tmp_path: Path) -> None:
    found = known(packages(tmp_path))
    chosen = choose_pass("Fold", found, BEGINNING + 100.0, 1)
    # The others run what every cell runs, and an `if` without its body.
    assert {found.cells[number].cell for number in chosen.cells} == {USERS, INT16}
    assert not chosen.left_out
    late = choose_pass("Fold", found, BEGINNING + 7.0, 1)
    assert [found.cells[number].cell for number in late.cells] == [USERS]
    assert [found.cells[number].cell for number in late.left_out] == [INT16]
    assert not choose_pass("Fol", found, BEGINNING + 100.0, 1).cells
