"""The order in which a search tries models, and the models that it begins with."""

from __future__ import annotations

import functools
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.comparing import candidates
from executorch_goldens.comparing.searching import (
    MOST,
    NOTHING,
    TRIES,
    UNCHANGED,
    Reached,
    Search,
    SearchOrder,
    Try,
)
from executorch_goldens.reach.choice import differing, words_of
from executorch_goldens.reach.code import Statement
from executorch_goldens.reach.edits import CodeEdit, Edits
from executorch_goldens.zoo.registry import Case
from tests.unit.reach.packages import FILE, packages

CHANGES = ("again", "flags", "rotated", "stacked")


def case(name: str, guards: str = "a case", **fields: Any) -> Case:
    return Case(name=name, family=name.partition("-")[0], guards=guards, build=lambda data: data, **fields)


NEAR = [(case("cat"), "tosa-int"), (case("pad"), "tosa-fp")]
OTHERS = [Try(case(f"sample-{number}"), UNCHANGED, "tosa-int") for number in range(3)]


def ran(lines: str, *edited: str) -> Reached:
    return Reached(frozenset(edited), frozenset([(lines, 1)]))


def names(walk: SearchOrder, most: int, reaches: bool = True) -> list[str]:
    """Return the models that a walk tries, each told to run lines of its own, or none."""
    found = []
    while len(found) < most and (tried := walk.next()) is not None:
        found.append(str(tried.cell))
        walk.tell(tried, ran(str(tried.cell), "edited") if reaches else NOTHING, failed=False)
    return found


def test_changes_samples_and_changes_of_what_reached_the_edit_take_turns() -> None:
    found = names(SearchOrder(NEAR, OTHERS, CHANGES), 6)
    assert found[:2] == ["tosa-int/cat-x-again", "tosa-int/sample-0-x-as-it-is"]
    assert found[3:5] == ["tosa-fp/pad-x-flags", "tosa-int/sample-1-x-as-it-is"]
    # What reached the edit has something more changed.
    assert found[2].startswith((f"{found[0]}-x-", "tosa-int/sample-0-x-"))


def test_the_same_seed_and_the_same_results_try_the_same_models() -> None:
    found = [names(SearchOrder(NEAR, OTHERS, CHANGES, seed=seed), 30) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_changes_that_are_asked_for_come_first_on_two_cases_and_are_half_of_the_further_ones() -> None:
    walk = SearchOrder(NEAR, (), CHANGES, likely=("rotated",))
    assert [walk.first.popleft()[0] for _ in range(3)] == ["rotated", "rotated", "again"]
    walk.first.clear()
    for number in range(200):
        walk.tell(
            Try(case(f"near-{number}"), UNCHANGED, "tosa-int"), ran(f"{number}", "edited"), failed=False
        )
    last = [tried.changes[-1] for tried in (walk._further() for _ in range(100)) if tried is not None]
    assert last.count("rotated") > 40


def test_no_model_is_tried_twice_or_with_more_changes_than_are_allowed() -> None:
    found = names(SearchOrder(NEAR, OTHERS, CHANGES), 200)
    assert len(found) == len(set(found))
    assert max(name.count("-x-") for name in found) == MOST


def test_what_reaches_nothing_is_not_changed_further() -> None:
    assert len(names(SearchOrder(NEAR, OTHERS, CHANGES), 200, reaches=False)) == len(CHANGES) + len(OTHERS)


def test_a_way_through_the_edit_that_is_known_brings_no_further_changes() -> None:
    walk = SearchOrder(NEAR, (), CHANGES)
    for _ in range(2):
        tried = walk.next()
        assert tried is not None
        walk.tell(tried, ran("the same lines", "edited"), failed=False)
    assert len(walk.reaching) == 1


def test_until_a_model_reaches_the_edit_those_that_run_something_of_its_files_are_changed_further() -> None:
    walk = SearchOrder(NEAR, (), CHANGES)
    near, other = walk.next(), walk.next()
    assert near is not None
    assert other is not None
    walk.tell(near, ran("beside it"), failed=False)
    found = walk._further()
    assert found.case is near.case
    walk.tell(other, ran("it", "edited"), failed=False)
    assert {each.case.name for each in (walk._further() for _ in range(9)) if each} == {other.case.name}


def test_a_change_that_does_not_fit_is_tried_on_the_next_cells_and_not_in_pairs() -> None:
    walk = SearchOrder([(case(name), "tosa-int") for name in ("a", "b", "c", "d", "e")], (), ("again",))
    found = []
    while (tried := walk.next()) is not None:
        found.append(tried.case.name)
        walk.tell(tried, NOTHING, failed=True)
    assert found == ["a", "b", "c"]
    assert len(found) == TRIES
    walk.tell(Try(walk.near[0][0], ("rotated",), "tosa-int"), ran("it", "edited"), failed=False)
    assert walk.next() is None


def test_a_model_that_takes_none_of_the_first_changes_is_left() -> None:
    walk = SearchOrder(NEAR, (), CHANGES)
    walk.tell(Try(case("fixed"), UNCHANGED, "tosa-int"), ran("it", "edited"), failed=False)
    found = []
    while (tried := walk._further()) is not None:
        found.append(tried.cell)
        walk.asked.add(tried.cell)
        walk.tell(tried, NOTHING, failed=True)
    assert len(found) == TRIES < len(CHANGES)


def test_every_second_further_change_is_of_what_ran_the_edited_statement_that_the_fewest_ran() -> None:
    walk = SearchOrder(NEAR, (), CHANGES, runs={"often": 9, "seldom": 1})
    for number in range(200):
        edited = ("often", "seldom") if number == 50 else ("often",)
        walk.tell(Try(case(f"near-{number}"), UNCHANGED, "tosa-int"), ran(f"{number}", *edited), failed=False)
    found = [each.case.name for each in (walk._further() for _ in range(60)) if each]
    assert found.count("near-50") > 20


def test_the_line_that_keeps_a_model_says_case_changes_and_target() -> None:
    tried = Try(case("cat"), ("again", "flags"), "tosa-int")
    assert tried.cell == Cell("tosa-int", "cat-x-again-x-flags")
    assert tried.line.endswith(
        f"keep(__name__, {tried.case.module!r}, 'cat', 'again', 'flags', target='tosa-int')"
    )


def statement(text: str) -> Statement:
    return Statement(text, 1, 1)


def test_what_differs_of_a_statement_in_which_something_moved_is_that() -> None:
    edit = CodeEdit(
        FILE, "Manager.run", (statement("add([Pad(), Slice()])"),), (statement("add([Slice(), Pad()])"),)
    )
    assert set(differing(edit).split()) in ({"Pad"}, {"Slice"})
    assert words_of(edit) & {"pad", "slice"} != {"pad", "slice"}
    same = CodeEdit(FILE, "f", (statement("x = y"),), (statement("x = y"),))
    assert differing(same) == "x y x y"


def test_operators_count_by_where_they_are_named(tmp_path: Path) -> None:
    text = (
        "OTHERS = {aten.slice_copy.Tensor}\n\n\n"
        "def fold(node):\n    if node.target == aten.pad.default:\n        return 1\n    return aten.cat.default\n"
    )
    packages(tmp_path, fold=text)
    old, new = statement("return aten.pad.default or aten._softmax.int"), statement("return aten.cat.default")
    found = candidates.operators(Edits((CodeEdit(FILE, "fold", (new,), (old,)),), (FILE,), ()), tmp_path)
    assert found["slice"] == candidates.FILE
    assert found["pad"] == found["cat"] == found["softmax"] == candidates.DIFFERS
    assert "fo" not in found


def test_words_of_an_edited_statement_ask_for_changes() -> None:
    edit = CodeEdit(FILE, "f", (statement("if pad_value != 0.0:"),), (statement("if pad_value > 0.0:"),))
    found = list(candidates.asked(Edits((edit,), (FILE,), ())))
    assert found == ["lowered-0", "raised-1", "clamped-inside-0", "uneven", "longer-steps", "odd"]
    # Those of names come after them.
    edit = CodeEdit("fuse.py", "FuseUsers.call", (statement("return dim"),), (statement("return -dim"),))
    found = list(candidates.asked(Edits((edit,), (FILE,), ())))
    assert found[:2] == ["from-the-end", "next-dimension"]
    assert {"read-twice-1", "again-0"} <= set(found[2:])


def test_an_operator_of_the_files_name_counts_as_one_of_the_statement(tmp_path: Path) -> None:
    file = f"{Path(FILE).parent}/decompose_index_select.py"
    operators = "OPS = {aten.index_select.default, aten.view_copy.default, tosa.SLICE.default}"
    text = f"{operators}\n\n\ndef f(dim):\n    return max(dim, 0)\n"
    packages(tmp_path, fold=text, file=file)
    edit = CodeEdit(file, "f", (statement("return max(dim, 0)"),), (statement("return dim % 4"),))
    found = candidates.operators(Edits((edit,), (file,), ()), tmp_path)
    assert (found["index select"], found["view"], found["slice"], found["max"]) == (
        *(candidates.STATEMENT, candidates.FILE, candidates.FILE, candidates.WORD),
    )


def test_models_with_the_operators_of_an_edit_come_first_and_families_take_turns() -> None:
    cases = [case(f"{name}-{number}") for name in ("cat", "pad", "relu") for number in range(2)]
    cases.append(case("drawn", "slice and relu", backends=("tosa-fp",)))
    found = list(
        candidates.ranked(cases, {"cat": 1, "pad": 1, "slice": 4}, ("tosa-int", "tosa-fp"), random.Random(0))
    )
    assert found[0].case.family == "drawn"
    assert sorted(tried.case.family for tried in found[1:3]) == ["cat", "pad"]
    assert len(found) == 5
    # One has a target that reaches the edit, the others get these in turn.
    assert [tried.target for tried in found] == ["tosa-fp", "tosa-int", "tosa-fp", "tosa-int", "tosa-fp"]


def test_a_case_that_is_named_by_an_operator_comes_before_one_that_has_it_somewhere() -> None:
    cases = [*(case(f"mul-{number}", "mul of a slice") for number in range(9)), case("slice", "a sum")]
    found = list(candidates.ranked(cases, {"slice": 2}, ("tosa-int",), random.Random(0)))
    assert found[0].case.name == "slice"


def test_a_drawn_model_has_the_operators_of_its_source() -> None:
    drawn = [
        replace(
            case(name), build=functools.partial(lambda source, data: source, f"x = torch.{name}_pool2d(x)")
        )
        for name in ("avg", "max")
    ]
    found = list(candidates.ranked(drawn, {"max pool2d": 2}, ("tosa-int",), random.Random(0)))
    assert [tried.case.name for tried in found] == ["max"]


def test_samples_get_the_other_operators_of_an_edit() -> None:
    samples = [Try(case(name), UNCHANGED, "tosa-int") for name in ("mul-0", "tanh-0", "where-0")]
    found = [str(each.cell) for each in candidates.in_a_row(samples, {"tanh": 4, "mul": 8, "unknown": 9})]
    assert found[:4] == [
        "tosa-int/mul-0-x-then-tanh",
        "tosa-int/mul-0-x-first-tanh",
        "tosa-int/tanh-0-x-then-mul",
        "tosa-int/tanh-0-x-first-mul",
    ]
    assert len(found) == 8


def test_what_was_tried_is_not_tried_again_when_a_model_is_made_smaller() -> None:
    walk = SearchOrder(NEAR, (), CHANGES)
    found = Try(NEAR[0][0], ("again", "flags"), "tosa-int")
    walk.asked.add(replace(found, changes=("again",)).cell)
    exported: list[Cell] = []
    pair: Any = SimpleNamespace(
        head="head",
        base="base",
        ask=lambda _, model: exported.append(model.cell),
        take=lambda *_: SimpleNamespace(result=None),
        differs=lambda *_: True,
    )
    sides: Any = None
    search = Search(sides, walk, lambda _: NOTHING)
    smaller = replace(found, changes=("flags",))
    assert search._smaller(found, pair) == smaller
    assert exported == [smaller.cell] * 2
    assert search.tried == 1
    assert search._smaller(found, pair) == found
