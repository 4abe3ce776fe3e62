"""Inputs as ``torch.export`` takes them: nested, by name, and not all of them tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch.export import Dim

from executorch_goldens.artifact import Cell, Lowered
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.data import Data, Example, example_of
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics import programs
from executorch_goldens.exporting.numerics.samples import samples_of, unbounded
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.judging import verdict
from executorch_goldens.zoo.registry import Case
from tests.support.making import outcome

pytestmark = pytest.mark.usefixtures("own_flatc")


@dataclass
class Cache:
    keys: torch.Tensor
    values: torch.Tensor
    length: int


torch.export.register_dataclass(Cache, serialized_type_name="tests.Cache")


class Pair(NamedTuple):
    one: torch.Tensor
    other: torch.Tensor


torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="tests.Pair")  # type: ignore[attr-defined]


class Nested(torch.nn.Module):
    """Uses each of its inputs, and gives a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(
        self,
        x: torch.Tensor,
        states: dict[str, Any],
        times: int,
        cache: Cache,
        nothing: None = None,
        *,
        bias: torch.Tensor,
        pair: Pair,
        mode: str = "none",
        twice: bool = False,
    ) -> dict[str, torch.Tensor]:
        y = self.linear(x) * times + states["h"] - states["c"][0] + cache.keys * cache.length + cache.values
        y = y + bias if mode == "add" else y - bias
        y = y + pair.one * pair.other
        return {"y": y + y if twice else y, "h": y - states["h"]}


def nested(data: Data) -> Example:
    def drawn(name: str, *shape: int) -> torch.Tensor:
        return data.tensor(name, *shape)

    return Example(
        Nested(),
        (
            drawn("x", 2, 4),
            {"h": drawn("h", 2, 4), "c": [drawn("c", 2, 4)]},
            3,
            Cache(drawn("keys", 2, 4), drawn("values", 2, 4), 2),
            None,
        ),
        # Not in the order of the signature.
        kwargs={
            "twice": True,
            "mode": "add",
            "pair": Pair(drawn("one", 4), drawn("other", 4)),
            "bias": drawn("bias", 4),
        },
    )


CASE = Case("nested", "tests", "something", nested)


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8"])
@pytest.mark.slow
def test_a_model_with_nested_inputs_is_lowered_and_right(target: str) -> None:
    artifact = export(CASE, target)
    made = artifact.result
    assert isinstance(made, Lowered), made
    assert not made.not_run
    assert [sample.name for sample in made.samples] == ["example", "zeros", "extremes", "drawn"]
    assert made.delegates
    cell = Cell(target, "nested")
    assert verdict.objection(cell, [outcome(artifact, cell)]) is None


def test_the_runtime_gets_each_input_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CallSpec.for_runtime

    def swapped(self: CallSpec, step: Any) -> Any:
        return right(self, (step[0], step[2], step[1], *step[3:]))

    monkeypatch.setattr(CallSpec, "for_runtime", swapped)
    artifact = export(CASE, "xnnpack-fp32")
    cell = Cell("xnnpack-fp32", "nested")
    objection = verdict.objection(cell, [outcome(artifact, cell)])
    assert objection.name == "corrupt"


def test_the_program_refuses_another_number_than_it_was_exported_with() -> None:
    made = export(CASE, "xnnpack-fp32").result
    assert isinstance(made, Lowered)
    example = example_of(CASE)
    given = example.call.for_runtime(example.tensors)
    assert [leaf for leaf in given if not isinstance(leaf, torch.Tensor)] == [3, 2, None, True, None]
    programs.run_methods(made.pte, [("forward", given)])
    wrong = tuple(5 if leaf is example.inputs[2] else leaf for leaf in given)
    with pytest.raises(RuntimeError, match="Failed to execute method forward"):
        programs.run_methods(made.pte, [("forward", wrong)])


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by


def test_a_float_is_an_input_where_the_runtime_takes_one() -> None:
    def build(data: Data) -> Example:
        return Example(Scaled(), (data.tensor("x", 2, 4), 0.5))

    made = export(Case("scaled", "tests", "something", build), "xnnpack-fp32").result
    assert isinstance(made, Lowered), made
    if compat.bindings_take_floats():
        assert len(made.samples) == 4
    else:
        assert "takes no float as an input" in made.not_run
        example = build(Data("scaled"))
        with pytest.raises(RuntimeError, match="Unsupported python type <class 'float'>"):
            programs.run_methods(made.pte, [("forward", example.call.for_runtime(example.tensors))])


def test_tensors_are_called_by_their_path() -> None:
    example = example_of(CASE)
    assert example.call.names(example.module) == [
        "x",
        "states.h",
        "states.c.0",
        "cache.keys",
        "cache.values",
        "pair.one",
        "pair.other",
        "bias",
    ]
    assert [tuple(tensor.shape) for tensor in example.tensors] == [(2, 4)] * 5 + [(4,)] * 3


def test_inputs_that_are_one_tensor_stay_one() -> None:
    x = Data("one").tensor("x", 2, 4)
    example = Example(torch.nn.Identity(), ({"a": x, "b": [x]},))
    for steps in samples_of(CASE, example).values():
        one, other = steps[0]
        assert one is other


BATCH = Dim("batch", min=2, max=6)


class Rows(torch.nn.Module):
    def forward(self, of: dict[str, Any], *more: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        return of["a"] + of["b"][0] + more[0] + last + of["cache"].keys


def rows(**changed: Any) -> Example:
    tensors = iter([Data("rows").tensor(str(number), 3, 4) for number in range(6)])
    cache = Cache(next(tensors), next(tensors), 2)
    shape = {0: BATCH}
    shapes = {
        "of": {"cache": [shape, None, None], "b": [shape], "a": {0: BATCH}},
        "more": (shape,),
        "last": (BATCH, None),
    }
    inputs = ({"a": next(tensors), "b": [next(tensors)], "cache": cache}, next(tensors))
    return Example(Rows(), inputs, kwargs={"last": next(tensors)}, dynamic_shapes=shapes, **changed)


def test_nested_dynamic_shapes_are_run_at_their_least_and_largest() -> None:
    found = samples_of(CASE, rows())
    assert [[tuple(x.shape) for x in found[name][0]] for name in ("least", "largest")] == [
        [(2, 4), (2, 4), (2, 4), (3, 4), (2, 4), (2, 4)],
        [(6, 4), (6, 4), (6, 4), (3, 4), (6, 4), (6, 4)],
    ]


class Keywords(torch.nn.Module):
    def forward(self, x: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
        return x + more["y"]


@pytest.mark.parametrize(
    "shapes", [{"x": {0: BATCH}, "more": {"y": {0: BATCH}}}, {"x": {0: BATCH}, "y": {0: BATCH}}]
)
def test_further_keywords_are_declared_together_or_beside_the_others(shapes: Any) -> None:
    example = Example(Keywords(), (torch.ones(3, 4),), kwargs={"y": torch.ones(3, 4)}, dynamic_shapes=shapes)
    (largest,) = samples_of(CASE, example)["largest"]
    assert [tuple(x.shape) for x in largest] == [(6, 4), (6, 4)]


def test_a_model_in_another_dtype_has_its_nested_inputs_in_it() -> None:
    made = Lowering.named("tosa-bf16").cast(example_of(CASE))
    assert {x.dtype for x in made.tensors} == {torch.bfloat16}
    assert (made.inputs[2], made.inputs[3].length, made.kwargs["mode"]) == (3, 2, "add")


@pytest.mark.parametrize("target", ["xnnpack-fp32", pytest.param("tosa-fp", marks=pytest.mark.slow)])
def test_a_nested_dynamic_program_is_right_at_each_size(target: str) -> None:
    artifact = export(Case("rows", "tests", "something", lambda data: rows()), target)
    made = artifact.result
    assert isinstance(made, Lowered), made
    assert {"least", "largest"} <= {sample.name for sample in made.samples}
    assert verdict.objection(Cell(target, "rows"), [outcome(artifact, Cell(target, "rows"))]) is None


def test_a_dimension_without_a_bound_is_named_by_its_path() -> None:
    n = Dim("n")
    x = torch.ones(3)
    shapes = {"of": {"a": None, "b": [{0: n}]}, "last": None}
    example = Example(Rows(), ({"a": x, "b": [x]},), kwargs={"last": x}, dynamic_shapes=shapes)
    assert unbounded(example) == ("dimension 0 of input of.b.0 (n)",)


def test_a_collection_of_shapes_refers_to_the_inputs_themselves() -> None:
    shapes = torch.export.ShapesCollection()
    x = torch.ones(3, 4)
    shapes[x] = (Dim("n", min=2, max=5), None)
    case = Case("some", "tests", "s", lambda data: Example(torch.nn.Identity(), (x,), dynamic_shapes=shapes))
    found = samples_of(case, example_of(case))
    assert found["largest"][0][0].shape == (5, 4)


class Counting(torch.nn.Module):
    """Keeps a state, and writes to a nested input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor, *, cache: dict[str, torch.Tensor]) -> torch.Tensor:
        self.seen.add_(x)
        cache["kept"].copy_(cache["kept"] + x)
        return self.seen + cache["kept"]


@pytest.mark.parametrize("target", ["xnnpack-fp32", pytest.param("tosa-fp", marks=pytest.mark.slow)])
def test_states_and_changed_inputs_are_seen(target: str) -> None:
    def build(data: Data) -> Example:
        cache = {"kept": data.tensor("kept", 1, 4)}
        return Example(Counting(), (data.tensor("x", 1, 4),), kwargs={"cache": cache})

    artifact = export(Case("counting", "tests", "something", build), target)
    made = artifact.result
    assert isinstance(made, Lowered), made
    by_name = {sample.name: sample for sample in made.samples}
    assert "third step" in by_name
    # What it changes comes before what it gives.
    assert len(by_name["example"].outputs) == 2
    assert not made.altered
    assert verdict.objection(Cell(target, "counting"), [outcome(artifact, Cell(target, "counting"))]) is None
