"""The models that are drawn from schemas: what they cover, and what they are made of."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import torch

from executorch_goldens.artifact import Cell, Exited, Outcome
from executorch_goldens.exporting.data import Data
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import ARGS, CONSTANT, SAME, CallModel, Operand
from executorch_goldens_plugins.compare.exporting.one_call import build
from lab.args import command, drawing, trying
from lab.args.drawing import RARE, Drawing, Family


@pytest.fixture(scope="module")
def pools() -> Drawing:
    made = Drawing(Family(["avg_pool2d.default"]))
    made.draw()
    return made


def test_every_pair_of_levels_that_eager_takes_is_in_some_model(pools: Drawing) -> None:
    pairs = [
        frozenset(((one, a), (other, b)))
        for one, other in itertools.combinations(("kernel_size", "stride", "ceil_mode", "(users)"), 2)
        for a in pools.factors[one]
        for b in pools.factors[other]
        if not {a, b} & RARE
    ]
    # A pool of unequal strides whose padding is more than half of its kernel, for instance, is refused.
    assert len([pair for pair in pairs if pair in pools.covered]) > 0.95 * len(pairs)


def test_a_pool_has_strides_that_are_uneven_each_way(pools: Drawing) -> None:
    strides = {tuple(each.arguments["stride"]) for each in pools.models if "stride" in each.arguments}
    assert {(1, 2), (2, 1), (2, 2)} <= strides


def test_what_most_code_refuses_is_one_at_a_time(pools: Drawing) -> None:
    row = {name: "one number" if "one number" in each else each[0] for name, each in pools.factors.items()}
    found = [sum(level in RARE for level in pools._plainer(row).values()) for _ in range(50)]
    assert {*found} == {0, 1}


def test_the_same_seed_draws_the_same_models() -> None:
    one, other = (Drawing(Family(["glu.default"])).draw() for _ in range(2))
    assert one == other


def test_levels_that_came_later_are_in_models_behind_those_that_are_numbered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family, (first, _) = Family(["upsample_nearest2d.vec"]), drawing.LATER
    made = Drawing(family).draw()
    for later, further in (
        ((first, {}), {(1.0, 4.0), (4.0, 1.0)}),
        (({}, {}), {(2.0, 1.0), (1.0, 2.0), (0.5, 1.0), (1.0, 0.5), (2.0, 3.0)}),
    ):
        monkeypatch.setattr(drawing, "LATER", later)
        before = Drawing(family).draw()
        assert made[: len(before)] == before
        factors = {tuple(each.arguments["scale_factors"] or ()) for each in made[len(before) :]}
        assert further <= factors
        made = before


@pytest.mark.parametrize("operators", [["max_pool2d.default"], ["conv1d.default", "conv2d.default"]])
def test_a_stride_is_beyond_the_kernel_in_each_direction_alone(operators: list[str]) -> None:
    assert {(True, False), (False, True)} <= {
        tuple(stride > kernel for stride, kernel in zip(each.facts["stride"], kernel_of(each), strict=True))
        for each in Drawing(Family(operators)).draw()
        if len(each.facts.get("stride") or ()) == 2 and len(kernel_of(each)) == 2
    }


def kernel_of(model: CallModel) -> Sequence[int]:
    """Return the sizes of a model's kernel."""
    weight = model.arguments.get("weight")
    return model.arguments["kernel_size"] if weight is None else weight.shape[2:]  # type: ignore[return-value,union-attr]


def test_a_model_that_ends_the_process_is_left_out() -> None:
    first = Drawing(Family(["glu.default"])).draw()[0]
    assert first not in Drawing(Family(["glu.default"]), {f"{first.target}: {first}"}).draw()


def test_operators_of_one_schema_share_an_array_and_those_of_shapes_of_their_own_do_not() -> None:
    found = drawing.families(["sin.default", "cos.default", "max_pool2d.default", "add.Tensor", "sub.Tensor"])
    assert [each.operators for each in found] == [
        ["add.Tensor", "sub.Tensor"],
        ["cos.default", "sin.default"],
        ["max_pool2d.default"],
    ]


def model(operator: str, **arguments: object) -> CallModel:
    around = {name: arguments.pop(name) for name in ("before", "after", "users") if name in arguments}
    return CallModel("m-0000", "tosa-fp", operator, arguments, **around)


X = Operand("float32", (2, 3))


@pytest.mark.parametrize("before", calls.BEFORE)
def test_what_comes_before_a_call_hands_it_an_operand_of_its_shape(before: str) -> None:
    example = build(model("neg.default", self=X, before=before), Data("m"))
    (found,) = example.module(*example.inputs)
    assert found.shape == (2, 3)


@pytest.mark.parametrize("layout", calls.LAYOUTS)
def test_an_operand_has_its_layout_and_an_input_is_laid_out_as_a_program_takes_it(layout: str) -> None:
    operand = Operand("float32", (2, 3, 4, 5), layout=layout)
    example = build(model("neg.default", self=operand), Data("m"))
    (given,) = example.inputs
    assert given.is_contiguous() or given.is_contiguous(memory_format=torch.channels_last)
    held = Operand("float32", (2, 3, 4, 5), CONSTANT, layout)
    example = build(model("add.Tensor", self=X, other=held), Data("m"))
    plain = example.module.other_0.is_contiguous()
    assert plain == (layout in ("contiguous",))


def test_operands_may_be_one_tensor_and_calls_may_be_made_again() -> None:
    both = model("add.Tensor", self=X, other=Operand("float32", (2, 3), SAME), users="equal")
    example = build(both, Data("m"))
    assert len(example.inputs) == 1
    found, again = example.module(*example.inputs)
    assert torch.equal(found, again)
    assert torch.equal(found, 2 * example.inputs[0])


@pytest.mark.parametrize(("values", "step"), [("sixteenths", 1 / 16), ("mantissas", 0)])
def test_values_are_sixteenths_or_have_full_mantissas(values: str, step: float) -> None:
    (x,) = build(model("neg.default", self=Operand("float32", (64,), values=values)), Data("m")).inputs
    assert bool((x * 16 % 1 == 0).all()) == bool(step)


def test_a_model_comes_to_what_its_program_is_or_to_an_end() -> None:
    cell = Cell("tosa-fp", "abs-0007")
    settings = here().settings((ARGS,), 2)
    (made,) = trying.in_chunks([cell], settings, float("inf"))
    found = trying.result(made, here())
    assert (found.model, found.outcome, found.finding) == ("abs-0007", trying.WHOLE, {})
    ended = Outcome(cell, "seed0", Exited(status=1), 1.0, 1.0)
    assert trying.result(ended, here()).outcome == trying.ENDED


def test_a_sweep_begins_with_one_model_of_each_operator_on_each_of_its_targets() -> None:
    every = list(calls.read().values())
    pairs = {(each.operator, each.target) for each in every}
    found = list(trying.order(every, {"abs-0007"}))
    assert found[0].name == "abs-0007"
    assert {(each.operator, each.target) for each in found[1 : len(pairs) + 1]} == pairs
    # Whenever it is stopped, no operator has had its turn much more often than another.
    operators = {each.operator for each in every}
    assert {each.operator for each in found[1 : len(operators) + 1]} == operators
    assert sorted(each.name for each in found) == sorted(each.name for each in every)


def test_a_sweep_leaves_out_what_has_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trying, "KEPT", tmp_path / "args")
    monkeypatch.setattr(trying, "RECORDS", tmp_path / "reach")
    left = {"abs-0007", "relu-0003"}
    assert trying.run(here(), calls.read().keys() - left, 2, float("inf")) == len(left)
    (file,) = tmp_path.glob("args/*/tried.jsonl")
    assert {each.model for each in trying.tried(file)} == left
    assert trying.run(here(), calls.read().keys() - left, 2, float("inf")) == 0


def test_an_operator_that_draws_at_random_is_no_model() -> None:
    # So seldom that two calls agree.
    assert not drawing.runs(model("dropout.default", input=X, p=1e-9, train=True))
    assert drawing.runs(model("dropout.default", input=X, p=1e-9, train=False))


def test_a_call_that_only_eager_takes_is_no_model() -> None:
    bits = Operand("bool", (2, 3), least=0.0, most=1.0)
    assert not drawing.runs(model("__lshift__.Scalar", self=bits, other=0))


@pytest.mark.parametrize(("target", "is_one"), [("tosa-fp", True), ("tosa-int", False)])
def test_a_model_that_calibration_refuses_is_none(target: str, is_one: bool) -> None:
    made = model("log.default", self=Operand("float32", (2, 8), values="mantissas"))
    assert drawing.runs(msgspec.structs.replace(made, target=target)) is is_one


def test_a_constant_that_is_written_is_no_state_of_the_model() -> None:
    made = model("add_.Tensor", self=Operand("float32", (2, 3), held=CONSTANT), other=X)
    example = build(made, Data("m"))
    program = torch.export.export(example.module, example.inputs).run_decompositions()
    assert not program.graph_signature.buffers_to_mutate


def test_an_operand_of_another_shape_is_not_the_one_before() -> None:
    inputs = build(model("add.Tensor", self=X, other=Operand("float32", (3,), held=SAME)), Data("m")).inputs
    assert [tuple(each.shape) for each in inputs] == [(2, 3), (3,)]


def test_the_factors_of_a_batch_norm_are_the_model_s_own() -> None:
    example = build(model("neg.default", self=X, after="batch-norm"), Data("m"))
    program = torch.export.export(example.module, example.inputs)
    called = [node for node in program.graph.nodes if node.op == "call_function"]
    assert [node.target.__name__ for node in called] == ["neg.default", "batch_norm.default"]


def test_a_permuted_input_is_exported() -> None:
    example = build(model("neg.default", self=Operand("float32", (2, 3, 4), layout="permuted")), Data("m"))
    torch.export.export(example.module, example.inputs, strict=True)


def test_what_is_there_keeps_its_number_and_what_is_new_comes_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = ["relu.default", "glu.default"]
    made = [
        CallModel("", "tosa-fp", name, {"self": Operand("float32", (size,))})
        for size in (2, 4, 6)
        for name in operators
    ]
    monkeypatch.setattr(
        command, "drawn", lambda family: (2, [each for each in made if each.operator in family.operators])
    )
    there = msgspec.structs.replace(made[3], name="glu-0003", releases=("1.5.1",))
    found = command.extended([there], operators)
    assert [each.name for each in found] == ["glu-0003", "glu-0004", "relu-0000", "relu-0001", "relu-0002"]
    # What the levels before the last ones are of is not drawn again.
    assert found[0] == there
    assert found[1].line == made[5].line
