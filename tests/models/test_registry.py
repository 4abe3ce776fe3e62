"""The registry refuses what would make a wrong path or hide a case; its data depends on names alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.exporting.data import Data, Example, example_of, fan_in_bits, samples_of
from harness.registry import SAMPLES, Case, Registry, ZooError, load, zoo_of

DATA = Data("registry-test")


def build(data: Data) -> Example:
    return Example(torch.nn.Identity(), ())


def make(name: str = "some-case", module: str = "zoo.layers", guards: str = "something") -> Case:
    def build_there(data: Data) -> Example:
        return build(data)

    build_there.__module__ = module
    return Case(name=name, family=module.rpartition(".")[2], guards=guards, build=build_there)


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "a/b", "../a", "a.b", "a b", "-a", "a-", "a--b", "a\n"])
def test_a_name_that_is_no_safe_directory_name_is_refused(name: str) -> None:
    with pytest.raises(ZooError, match="not of the form") as raised:
        Registry().add(make(name=name))
    assert repr(name) in str(raised.value)


def test_a_name_that_its_module_has_taken_is_refused() -> None:
    registry = Registry()
    registry.add(make(module="zoo.cat"))
    with pytest.raises(ZooError, match=r"'some-case' is registered twice in zoo\.cat"):
        registry.add(make(module="zoo.cat"))
    assert [case.family for case in registry] == ["cat"]


def test_a_name_that_two_modules_of_a_zoo_have_is_refused_and_both_are_named() -> None:
    registry = Registry()
    registry.add(make(module="zoo.cat"))
    registry.add(make(module="zoo.permute"))
    with pytest.raises(
        ZooError, match=r"'some-case' is registered twice in zoo: in zoo\.cat and in zoo\.permute"
    ):
        registry.within(["zoo"])
    assert registry.within(["zoo.cat"])["some-case"].module == "zoo.cat"


def test_two_zoos_may_have_one_name_and_only_a_run_over_both_is_refused() -> None:
    registry = Registry()
    for module in ("models.layers", "theirs", "models_too.layers"):
        registry.add(make(name="linear", module=module))
    assert registry.within(["models"])["linear"].module == "models.layers"
    assert registry.within(["theirs"])["linear"].module == "theirs"
    with pytest.raises(ZooError, match=r"'linear' is both in models and in theirs: .*--goldens"):
        registry.within(["models", "theirs"])


def test_a_case_is_of_the_innermost_zoo_that_is_named() -> None:
    case = make(module="models.audio.layers")
    assert zoo_of(case, ["models", "models.audio"]) == "models.audio"
    assert zoo_of(case, ["models.audio.layers", "models"]) == "models.audio.layers"
    assert zoo_of(case, ["models.audio.lay", "audio"]) is None


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("import no_such_module", ["cannot be imported", "No module named 'no_such_module'"]),
        ("x = 1\ny = undefined", ["broken_zoo.py, line 2", "NameError", "'undefined'"]),
        ("def f(:", ["cannot be imported", "SyntaxError", "line 1"]),
        ("x = 1", ["no case is registered", "harness.case"]),
        ("from harness import case\n@case(guards='')\ndef f(data): ...", ["'f' must say in one line"]),
    ],
)
def test_a_zoo_that_cannot_be_loaded_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, facts: list[str]
) -> None:
    (tmp_path / "broken_zoo.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_zoo", raising=False)
    with pytest.raises(ZooError, match="--models broken_zoo") as raised:
        load(["broken_zoo"])
    for fact in facts:
        assert fact in str(raised.value)


@pytest.mark.parametrize("guards", ["", "  ", "two\nlines"])
def test_a_case_that_does_not_say_in_one_line_what_it_guards_is_refused(guards: str) -> None:
    with pytest.raises(ValueError, match="'some-case' must say in one line"):
        Registry().add(make(guards=guards))


def test_a_zoo_lists_its_cases_in_order_of_registration_and_by_name() -> None:
    registry = Registry()
    for name in ("b", "a"):
        registry.add(make(name=name))
    assert [case.name for case in registry] == list(registry.within(["zoo"])) == ["b", "a"]
    assert len(registry) == 2


def test_a_tensor_depends_on_case_and_name_not_on_what_was_drawn_before() -> None:
    fresh = DATA.tensor("x", 32)
    DATA.tensor("y", 32)
    assert torch.equal(DATA.tensor("x", 32), fresh)
    assert not torch.equal(DATA.tensor("y", 32), fresh)
    assert not torch.equal(Data("another-test").tensor("x", 32), fresh)


def test_a_tensor_has_dyadic_values_within_its_limit() -> None:
    numerators = DATA.tensor("x", 1000, bits=3, limit=5).numpy() * 2**3
    assert set(np.unique(numerators)) == {float(k) for k in range(-5, 6)}


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_a_tensor_has_the_asked_shape(shape: tuple[int, ...]) -> None:
    assert DATA.tensor("x", *shape).shape == shape


@pytest.mark.parametrize("fan_in", [1, 2, 3, 6, 8, 9, 27, 31, 32, 64, 72, 144, 576, 1024])
def test_weights_of_any_fan_in_keep_the_size_of_activations(fan_in: int) -> None:
    deviation = 2.0 ** -fan_in_bits(fan_in) / 3**0.5
    assert 0.5 < deviation * fan_in**0.5 < 1.7


def test_fill_is_keyed_by_parameter_name_and_leaves_other_buffers_alone() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(64)
            self.linear = torch.nn.Linear(64, 64)
            self.register_buffer("table", torch.arange(3.0))

    model = DATA.fill(Model())
    state = model.state_dict()
    assert not model.training
    assert torch.equal(state["table"], torch.arange(3.0))
    assert torch.equal(state["linear.bias"], DATA.tensor("linear.bias", 64, bits=5, limit=16))
    for scale in ("norm.weight", "norm.running_var"):
        assert state[scale].min() == 0.5
        assert state[scale].max() == 1.5
    assert state["norm.running_mean"].unique().numel() > 8
    assert state["linear.weight"].abs().max() == 0.25


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
@pytest.mark.parametrize("sample", SAMPLES[1:])
def test_other_samples_keep_to_the_examples_range_dtype_and_layout(sample: str, dtype: torch.dtype) -> None:
    example = DATA.tensor("x", 1, 3, 5, 4, bits=2).to(dtype).contiguous(memory_format=torch.channels_last)
    filled = DATA.like("0", example, sample)
    assert (filled.dtype, filled.stride()) == (dtype, example.stride())
    assert torch.equal(filled, DATA.like("0", example, sample))
    if sample == "zeros":
        assert not filled.any()
    else:
        assert example.min() <= filled.min() < filled.max() <= example.max()
        assert not torch.equal(filled, example)
    if sample == "extremes":
        assert set(filled.unique().tolist()) == {example.min().item(), example.max().item()}


def test_a_case_names_the_samples_that_it_is_run_on() -> None:
    def one_input(data: Data) -> Example:
        return Example(torch.nn.Identity(), (data.tensor("x", 4),))

    case = Case(name="some-case", family="layers", guards="something", build=one_input)
    example = example_of(case)
    assert tuple(samples_of(case, example)) == SAMPLES
    assert samples_of(case, example)["example"] is example.inputs
    assert tuple(samples_of(replace(case, run_on=("example", "drawn")), example)) == ("example", "drawn")


def test_a_case_without_inputs_is_run_once() -> None:
    case = make()
    assert samples_of(case, example_of(case)) == {"example": ()}
