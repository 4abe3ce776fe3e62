"""The order in which a search tries models, and the models that it begins with."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.zoo.registry import Case
from executorch_goldens_plugins.compare import candidates
from executorch_goldens_plugins.compare.calls import OPERANDS, ModelError, borrowed, borrowing, read
from executorch_goldens_plugins.compare.exporting.args import case as case_of
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.choice import beside
from executorch_goldens_plugins.compare.reach.edits import CodeEdit, Edits
from executorch_goldens_plugins.compare.searching import (
    BASES,
    ENOUGH,
    MOST,
    NOTHING,
    SEVERAL,
    TRIES,
    UNCHANGED,
    Reached,
    Search,
    SearchOrder,
    Try,
    _distance,
    _kind,
    neighbours,
)
from tests import GOLDENS
from tests.plugins.compare.reach.packages import packages

CHANGES = ("again", "flags", "rotated", "stacked")


def case(name: str, guards: str = "a case", **fields: Any) -> Case:
    return Case(name=name, family=name.partition("-")[0], guards=guards, build=lambda data: data, **fields)


NEAR = [(case("cat"), "tosa-int"), (case("pad"), "tosa-fp")]
OTHERS = [Try(case(f"sample-{number}"), UNCHANGED, "tosa-int") for number in range(3)]


def one_call(name: str) -> Try:
    return Try(case_of(read()[name]), UNCHANGED, read()[name].target)


MODELS = [one_call(f"max-pool2d-{number:04}") for number in range(2)]


def ran(lines: str, *edited: str) -> Reached:
    return Reached(frozenset(edited), frozenset([(lines, 1)]))


def names(walk: SearchOrder, most: int, reaches: bool = True) -> list[str]:
    """Return the models that a walk tries, each told to run lines of its own, or none."""
    found = []
    while len(found) < most and (tried := walk.next()) is not None:
        found.append(str(tried.cell))
        walk.tell(tried, ran(str(tried.cell), "edited") if reaches else NOTHING, failed=False)
    return found


def test_what_reached_the_edit_takes_facts_of_other_models_and_models_and_changes_take_the_other_turns() -> (
    None
):
    found = names(SearchOrder(NEAR, MODELS, OTHERS, CHANGES), 4)
    assert found[:2] == [str(each.cell) for each in MODELS[:2]]
    assert found[2] == "tosa-int/cat-x-again"
    assert re.fullmatch(r".*/max-pool2d-000[01]-x-.*-\d{4}", found[3])


def test_every_second_model_is_the_one_that_differs_least_from_what_reached_the_edit() -> None:
    walk = SearchOrder((), [one_call(f"max-pool2d-{number:04}") for number in range(40)])
    first = walk._model()
    walk.tell(first, ran("it", "edited"), failed=False)
    assert len(walk.models) % 2
    left = {each.cell.case: _distance(each, [first]) for each in walk.models.values()}
    assert _distance(walk._model(), [first]) == min(left.values()) < max(left.values())


def test_each_value_of_each_fact_of_an_operator_is_tried_once_arguments_first() -> None:
    tried = one_call("max-pool2d-0000")
    found = [each.model for each in neighbours(tried) if each.fact != OPERANDS]
    facts = [
        {name for name in tried.model.facts if each.facts[name] != tried.model.facts[name]} for each in found
    ]
    assert all(len(each) == 1 for each in facts)
    assert len({str(each) for each in found}) == len(found)
    assert {*facts[0], *facts[1], *facts[2]} <= {*tried.model.plain}
    assert {*itertools.chain(*facts)} >= {"kernel_size", "stride", "padding", "dilation", "users", "values"}


def test_an_argument_that_a_model_leaves_out_is_borrowed_too() -> None:
    tried = one_call("max-pool2d-0012")
    assert "stride" not in tried.model.facts
    found = {tuple(each.model.facts["stride"]) for each in neighbours(tried) if each.fact == "stride"}
    assert {(4, 1), (1, 4)} <= found


def test_operands_are_borrowed_with_their_ranks_optional_ones_and_gaps_in_lists() -> None:
    for operator, argument in (("conv2d.default", "bias"), ("index.Tensor", "indices")):
        models = [one_call(each.name) for each in read().values() if each.operator == operator]
        tried = next(each for each in models if "bias" not in dict(each.model.facts[OPERANDS]))
        found = [each.model for each in neighbours(tried) if each.fact == OPERANDS]
        ranks = [each.facts[OPERANDS] for each in found]
        assert len({*ranks}) == len(ranks)
        assert {*ranks} == {each.model.facts[OPERANDS] for each in models} - {tried.model.facts[OPERANDS]}
        assert any(argument in dict(each) for each in ranks)
        own = {name: value for name, value in tried.model.plain.items() if name != "bias"}
        assert all(own.items() <= each.plain.items() for each in found)


def test_facts_with_which_edited_statements_read_something_else_come_in_every_second_turn() -> None:
    walk = SearchOrder((), [MODELS[0]])
    first = walk.next()
    assert first is not None
    walk.tell(first, ran("it", "edited")._replace(operands=frozenset([("width = 1",)])), failed=False)
    deciding = next(each for each in walk.neighbours[0] if each.fact == "dilation")
    walk.tell(deciding, ran("it", "edited")._replace(operands=frozenset([("width > 1",)])), failed=False)
    found = itertools.islice(iter(walk._neighbour, None), 24)
    facts = [each.fact for each in found if len(each.changes) == 1]
    plainly = [each.fact for each in neighbours(first)][: len(facts)]
    assert facts.count("dilation") == len(facts) // 2 > plainly.count("dilation")


def test_arguments_that_edited_statements_read_by_their_names_come_in_every_second_turn() -> None:
    walk = SearchOrder((), [MODELS[0]], read=["dilation", "pair"])
    first = walk.next()
    assert first is not None
    walk.tell(first, ran("it", "edited"), failed=False)
    facts = [each.fact for each in itertools.islice(iter(walk._neighbour, None), 16)]
    assert facts[1::2] == ["dilation"] * 8
    assert {*facts[::2]} > {"kernel_size", "stride"}


def test_what_makes_edited_statements_read_something_new_gets_its_second_fact_next() -> None:
    walk = SearchOrder((), [MODELS[0]])
    first = walk.next()
    assert first is not None
    told = [
        ran("it", "edited")._replace(operands=frozenset([(read,)])) for read in ("width = 1", "width > 1")
    ]
    walk.tell(first, told[0], failed=False)
    one, other = walk.neighbours[0][0], walk.neighbours[0][1]
    walk.tell(one, told[1], failed=False)
    found = walk._neighbour()
    assert found is not None
    assert found.before == one
    assert found.fact != one.fact
    # The same again is nothing new.
    number = len(walk.second)
    walk.tell(other, told[1], failed=False)
    assert len(walk.second) == number > 0


def of_kind(target: str, dtype: str) -> list[Try]:
    found = (each for each in read().values() if each.operator == "max_pool2d.default")
    return [one_call(each.name) for each in found if (each.target, each.operands[0].dtype) == (target, dtype)]


def test_what_infects_an_edited_statement_is_tried_on_models_of_other_kinds_those_with_a_delegate_first() -> (
    None
):
    refused, taken = of_kind("xnnpack-fp32", "bfloat16")[0], of_kind("xnnpack-fp32", "float32")[0]
    walk = SearchOrder((), ())
    walk.tell(refused, ran("it", "edited"), failed=False)
    infected = [each for each in neighbours(refused) if each.fact in ("stride", "kernel_size")][:2]
    for each in infected:
        walk.tell(each, ran("it", "edited")._replace(infected=True), failed=False)
    assert not walk.moved
    walk.tell(of_kind("xnnpack-int8", "float32")[0], ran("it", "edited"), failed=False)
    walk.tell(taken, ran("it", "edited")._replace(taken=True), failed=False)
    assert {each.changes for each in walk.moved} == {each.changes for each in infected}
    assert [each.case for each in walk.moved][:2] == [taken.case] * 2
    first = walk.moved[0]
    assert first in [walk._neighbour() for _ in range(3)]


def test_a_model_that_infects_an_edited_statement_as_it_is_is_tried_for_the_targets_of_others() -> None:
    one, other = of_kind("xnnpack-fp32", "bfloat16")[0], of_kind("xnnpack-int8", "float32")[0]
    walk = SearchOrder((), ())
    walk.tell(other, ran("it", "edited"), failed=False)
    walk.tell(one, ran("it", "edited")._replace(infected=True), failed=False)
    assert walk.moved[0] == replace(one, target=other.target)


def test_bases_are_few_and_unlike_with_a_delegate_and_without() -> None:
    walk = SearchOrder((), ())
    every = [one_call(each.name) for each in read().values() if each.operator == "max_pool2d.default"]
    for number, each in enumerate(every):
        walk.tell(each, ran("it", "edited")._replace(taken=number % 2 == 0), failed=False)
    kinds = [(_kind(each), is_taken) for each, is_taken in walk.bases]
    assert len({*kinds}) == len(kinds)
    assert sorted(is_taken for _, is_taken in kinds) == [False] * BASES + [True] * BASES


def test_a_search_ends_where_models_that_reach_the_edit_go_no_new_way_and_not_where_none_reaches_it() -> None:
    every = [Try(case(f"sample-{number}"), UNCHANGED, "tosa-int") for number in range(2 * ENOUGH)]
    for ways, most in ((("the same", "edited"), ENOUGH + 1), (("beside it",), len(every))):
        walk, number = SearchOrder((), (), every), 0
        while (tried := walk.next()) is not None and number < len(every):
            walk.tell(tried, ran(*ways), failed=False)
            number += 1
        assert number == most
        assert walk.is_over == (number == ENOUGH + 1)


def test_the_same_seed_and_the_same_results_try_the_same_models() -> None:
    found = [names(SearchOrder(NEAR, MODELS, OTHERS, CHANGES, seed=seed), 30) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_likely_changes_are_tried_first_on_several_cases() -> None:
    walk = SearchOrder(NEAR, (), (), CHANGES, likely=("rotated",))
    assert [walk.first.popleft()[0] for _ in range(SEVERAL + 1)] == [*["rotated"] * SEVERAL, "again"]


def test_no_model_is_tried_twice_or_with_more_changes_than_are_allowed() -> None:
    found = names(SearchOrder(NEAR, (), OTHERS, CHANGES), 200)
    assert len(found) == len(set(found))
    assert max(name.count("-x-") for name in found) == MOST


def test_what_reaches_nothing_is_not_changed_further() -> None:
    assert len(names(SearchOrder(NEAR, (), OTHERS, CHANGES), 200, reaches=False)) == len(CHANGES) + len(
        OTHERS
    )


def test_a_way_through_the_edit_that_is_known_brings_no_further_changes() -> None:
    walk = SearchOrder(NEAR, (), (), CHANGES)
    for _ in range(2):
        tried = walk.next()
        assert tried is not None
        walk.tell(tried, ran("the same lines", "edited"), failed=False)
    assert len(walk.reaching) == 1


def test_until_a_model_reaches_the_edit_those_that_run_something_of_its_files_are_changed_further() -> None:
    walk = SearchOrder(NEAR, (), (), CHANGES)
    near, other = walk._first(), walk._first()
    assert near is not None
    assert other is not None
    walk.tell(near, ran("beside it"), failed=False)
    found = walk._further()
    assert found.case is near.case
    walk.tell(other, ran("it", "edited"), failed=False)
    assert {each.case.name for each in (walk._further() for _ in range(9)) if each} == {other.case.name}


def test_a_change_that_does_not_fit_is_tried_on_the_next_cells_and_not_in_pairs() -> None:
    walk = SearchOrder([(case(name), "tosa-int") for name in ("a", "b", "c", "d", "e")], (), (), ("again",))
    found = []
    while (tried := walk.next()) is not None:
        found.append(tried.case.name)
        walk.tell(tried, NOTHING, failed=True)
    assert found == ["a", "b", "c"]
    assert len(found) == TRIES
    walk.tell(Try(walk.near[0][0], ("rotated",), "tosa-int"), ran("it", "edited"), failed=False)
    assert walk.next() is None


def test_a_model_that_takes_none_of_the_first_changes_is_left() -> None:
    walk = SearchOrder(NEAR, (), (), CHANGES)
    walk.tell(Try(case("fixed"), UNCHANGED, "tosa-int"), ran("it", "edited"), failed=False)
    found = []
    while (tried := walk._further()) is not None:
        found.append(tried.cell)
        walk.asked.add(tried.cell)
        walk.tell(tried, NOTHING, failed=True)
    assert len(found) == TRIES < len(CHANGES)


def test_every_second_further_change_is_of_what_ran_the_edited_statement_that_the_fewest_ran() -> None:
    walk = SearchOrder(NEAR, (), (), CHANGES, runs={"often": 9, "seldom": 1})
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


def test_the_operators_of_an_edit_are_those_of_its_function_then_of_its_class_and_file(
    tmp_path: Path,
) -> None:
    file = "executorch/backends/arm/_passes/decompose_maxpool2d_with_dilation_pass.py"
    source = Path(distribution("executorch").locate_file(file)).read_text()
    packages(tmp_path, fold=source, file=file)
    edits = Edits((CodeEdit(file, "DecomposeMaxPool2dPass.call_operator"),), (file,), ())
    found = candidates.operators(edits, tmp_path, ["relu-0000", "a case of a zoo"])
    # Those of models that reach it, those of its class's table, and those that it may make.
    assert found[:3] == ("relu.default", "max_pool2d.default", "max_pool2d_with_indices.default")
    assert {"view_copy.default", "slice_copy.Tensor"} < set(found[3:])
    assert "avg_pool2d.default" not in found
    # Those of models that reach its file alone come last.
    found = candidates.operators(edits, tmp_path, [], beyond=["relu-0000"])
    assert (found[0], found[-1]) == ("max_pool2d.default", "relu.default")


def test_an_edit_that_names_no_operator_has_those_of_functions_that_its_cells_run_and_few_others() -> None:
    file = "executorch/backends/arm/operators/op_tosa_max_pool2d_adaptive.py"
    edits = Edits((CodeEdit(file, "MaxPool2dAdaptiveVisitor.define_node"),), (file,), ())
    near = beside(edits, maps.read(GOLDENS / "1.5.1" / maps.FILE))
    assert {name.partition(".")[0] for _, name in near} >= {"RewriteMaxPool2dPass"}
    site = Path(distribution("executorch").locate_file(""))
    assert candidates.operators(edits, site, ["a case of a zoo"]) == ()
    assert candidates.operators(edits, site, ["a case of a zoo"], near)[0] == "max_pool2d.default"


def test_operators_with_a_copy_have_the_models_of_both_and_any_overload_those_of_all() -> None:
    every = {"view.default", "view_copy.default", "mean.dim", "mean.default"}
    assert set(candidates._overloads("view_copy.default", every)) == {"view.default", "view_copy.default"}
    assert set(candidates._overloads("mean.*", every)) == {"mean.dim", "mean.default"}
    assert set(candidates._overloads("mean.dim", every)) == {"mean.dim"}


def test_models_are_tried_on_targets_that_reach_the_edit_their_own_first_and_operators_take_turns() -> None:
    cases = {name: one_call(name).case for name in read() if name.startswith(("relu-0", "neg-0"))}
    found = candidates.candidates(cases, ("relu.default", "neg.default"), ("tosa-fp",), random.Random(0))
    assert [each.case.family for each in found[:4]] == ["relu.default", "neg.default"] * 2
    assert {each.target for each in found} == {"tosa-fp"}
    own = [read()[each.case.name].target == "tosa-fp" for each in found if each.case.family == "relu.default"]
    assert own == sorted(own, reverse=True)


def test_a_model_borrows_a_fact_of_another_one_of_its_operator() -> None:
    one, other = (read()[name] for name in ("max-pool2d-0000", "max-pool2d-0001"))
    given = borrowed(one, borrowing("kernel_size", other.name))
    assert given.arguments["kernel_size"] == other.arguments["kernel_size"]
    assert given.distance(one) == (one.arguments["kernel_size"] != other.arguments["kernel_size"])
    with pytest.raises(ModelError, match="no change of max-pool2d-0000"):
        borrowed(one, "kernel-size-9999")


def test_what_was_tried_is_not_tried_again_when_a_model_is_made_smaller() -> None:
    walk = SearchOrder(NEAR, (), (), CHANGES)
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
