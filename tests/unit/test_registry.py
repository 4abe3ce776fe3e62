"""The registry refuses cases with a wrong path or a duplicate name; its data depends on names alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.exporting import arrays
from executorch_goldens.exporting.data import MANY, PARTS, STEP, Data, Example, cast, example_of, fan_in_bits
from executorch_goldens.exporting.numerics.samples import samples_of
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import SAMPLES, Case, Registry, ZooError, load, zoo_of
from tests.support.screens import screen

DATA = Data("registry-test")


def build(data: Data) -> Example:
    return Example(torch.nn.Identity(), ())


def make(name: str = "some-case", module: str = "zoo.layers", guards: str = "something") -> Case:
    def build_there(data: Data) -> Example:
        return build(data)

    build_there.__module__ = module
    return Case(name=name, family=module.rpartition(".")[2], guards=guards, build=build_there)


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "../a", "a/b", "a.b", "a-", "a\n"])
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


def test_a_name_that_two_modules_of_a_zoo_have_is_refused_and_both_are_named(
    snapshot: SnapshotAssertion,
) -> None:
    registry = Registry()
    registry.add(make(module="zoo.cat"))
    registry.add(make(module="zoo.permute"))
    with pytest.raises(ZooError) as raised:
        registry.within(["zoo"])
    assert screen(str(raised.value)) == snapshot
    assert registry.within(["zoo.cat"])["some-case"].module == "zoo.cat"


def test_cases_that_are_made_later_are_made_once_and_for_an_export_that_one_alone() -> None:
    registry, made = Registry(), list[str]()

    def later(name: str) -> Case:
        made.append(name)
        return make(name=name, module="zoo.later")

    registry.add_later({name: name for name in ("one", "two", "three")}, later)
    registry.add(make())
    assert [*registry.within(["zoo"], "two")] == ["some-case", "two"]
    assert made == ["two"]
    assert [*registry.within(["zoo"], "unknown")] == ["some-case", "two"]
    assert (
        {*registry.within(["zoo"])}
        == {"some-case", "one", "two", "three"}
        == {each.name for each in registry}
    )
    assert sorted(made) == ["one", "three", "two"]


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
    "source",
    [
        "import no_such_module",
        "x = 1\ny = undefined",
        "def f(:",
        "x = 1",
        "from executorch_goldens import case\n@case(guards='')\ndef f(data): ...",
        "from executorch_goldens import case\n@case(guards='a')\ndef f(): ...",
    ],
    ids=["no module", "no name", "no syntax", "no case", "no guards", "no argument"],
)
def test_a_zoo_that_cannot_be_loaded_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "broken_zoo.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_zoo", raising=False)
    with pytest.raises(ZooError, match="--models broken_zoo") as raised:
        load(["broken_zoo"])
    assert screen(str(raised.value), {tmp_path: "FOLDER"}) == snapshot


@pytest.mark.parametrize("guards", ["", "  ", "two\nlines"])
def test_a_case_that_does_not_say_in_one_line_what_it_guards_is_refused(guards: str) -> None:
    with pytest.raises(ValueError, match="'some-case' needs guards"):
        Registry().add(make(guards=guards))


@pytest.mark.parametrize(
    "fields",
    [
        {"backends": ("tosaa",)},
        {"backends": ("tosa", "xnnpack-fp23")},
        {"backends": ("",)},
        {"backends": "tosa"},
        {"quantization": "histogramm"},
        {"run_on": ("exmaple",)},
        {"run_on": ()},
        {"run_on": "zeros"},
        {"also": ("tosa-int61",)},
        {"imprecise": {"tosa-itn": 0.2}},
        {"imprecise": {"tosa-int": "0.2"}},
        {"imprecise": {"tosa-int": float("nan")}},
        {"imprecise": 0.2},
        {"imprecise": {"tosa-int": 1.2}},
        {"issue": "18971"},
        {"constant_outputs": "yes"},
        {"releases": ("1.4,1",)},
    ],
    ids=str,
)
def test_a_field_of_a_case_that_holds_what_it_cannot_is_refused_with_the_near_name(
    fields: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    registry = Registry()
    with pytest.raises(ZooError, match=r"case 'some-case' of zoo\.layers: ") as raised:
        registry.add(replace(make(), **fields))
    assert screen(str(raised.value)) == snapshot
    assert [*registry] == []


def test_names_of_backends_and_of_targets_that_distributions_bring_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = replace(targets.TARGETS["xnnpack-fp32"], name="example-fp32", backend="xnnpack")
    known = {**targets.TARGETS, own.name: own}
    fields: dict[str, Any] = {"backends": ("example", "tosa-int"), "imprecise": {"example-fp32": 0.25}}
    with pytest.raises(ZooError, match="'example' is unknown"):
        Registry().add(replace(make(), **fields))
    monkeypatch.setattr(targets, "available", lambda: known)
    Registry().add(replace(make(), **fields))


def test_a_zoo_lists_its_cases_in_order_of_registration_and_by_name() -> None:
    registry = Registry()
    for name in ("b", "a"):
        registry.add(make(name=name))
    assert [case.name for case in registry] == list(registry.within(["zoo"])) == ["b", "a"]


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


def test_weights_of_any_fan_in_keep_the_size_of_activations() -> None:
    for fan_in in range(1, 1025):
        deviation = 2.0 ** -fan_in_bits(fan_in) / 3**0.5
        assert 0.5 < deviation * fan_in**0.5 < 1.7, fan_in


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


#: Of torch 2.9, the oldest release's; those of float4 and of bits are tried where torch has them.
DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    *(torch.float8_e8m0fnu, torch.complex32, torch.complex64, torch.complex128, torch.bool),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *arrays.PACKED,
]


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("sample", SAMPLES[1:])
def test_every_dtype_that_torch_can_export_can_be_drawn_in_the_examples_range(sample: str) -> None:
    codes = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4)
    for dtype in DTYPES:
        example = codes.view(dtype) if dtype in arrays.PACKED else codes.float().to(dtype)
        filled = DATA.like("0", example, sample)
        assert (filled.dtype, filled.shape) == (dtype, example.shape)
        given, values = arrays.array_of(example), arrays.array_of(filled)
        assert np.isfinite(values).all(), dtype
        for part in (np.real, np.imag):
            low, high = part(given).min(), part(given).max()
            assert low <= part(values).min() <= part(values).max() <= high, dtype
        if sample != "zeros":
            assert len(np.unique(values)) > 1, dtype
            assert not np.array_equal(values, given), dtype


@pytest.mark.parametrize("sample", ["extremes", "drawn"])
@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0.0, 1e-3, torch.float32),
        (-3.4e38, 3.4e38, torch.float32),
        (-1.7e308, 1.7e308, torch.float64),
        (0.0, 5e-324, torch.float64),
        (-(2**63), 2**63 - 1, torch.int64),
        (2**53, 2**53 + 1, torch.int64),
        (0, 2**64 - 1, torch.uint64),
    ],
)
def test_ranges_are_followed_however_narrow_or_wide(
    low: float, high: float, dtype: torch.dtype, sample: str
) -> None:
    example = torch.tensor([low, high] * 32, dtype=dtype)
    values = arrays.array_of(DATA.like("0", example, sample))
    assert (values >= arrays.array_of(example).min()).all()
    assert (values <= arrays.array_of(example).max()).all()
    assert len(np.unique(values)) >= 2 or high == 5e-324


def test_a_long_sum_of_drawn_values_rounds_nowhere() -> None:
    """Values that all end in the same bits round one way each time, further than the order of a sum shows."""
    example = torch.linspace(-0.2345678, 1.7654321, MANY)
    values = DATA.like("0", example, "drawn")
    assert example.min() <= values.min() < values.max() <= example.max()
    one_after_another = np.add.accumulate(values.numpy(), dtype=np.float32)[-1]
    assert one_after_another == values.double().sum().item()
    few = DATA.like("0", example[:: MANY // 64], "drawn")
    assert few.min() % (STEP / PARTS) != 0


def test_integers_stay_in_the_range_of_the_example_where_that_is_without_zero() -> None:
    """They may be indices."""

    def drawn(example: torch.Tensor) -> list[list[int]]:
        return [DATA.like("0", example, sample).tolist() for sample in SAMPLES[1:]]

    # Places to write to: one that is named twice leaves open what is written.
    for places in drawn(torch.tensor([4, 1, 7, 5, 2, 0])):
        assert sorted(places) == [0, 1, 2, 4, 5, 7]
    assert drawn(torch.tensor([4, 1, 7]))[:2] == [[1, 4, 7], [7, 4, 1]]
    assert drawn(torch.tensor([[4, 1, 7]]))[0] == [[1, 1, 1]]
    for low, high, nearest in ((3, 7, 3), (-7, -3, -3), (-2, 5, 0)):
        example = torch.tensor([low, high, low, high])
        assert DATA.like("0", example, "zeros").tolist() == [nearest] * 4
        for sample in SAMPLES[1:]:
            assert set(DATA.like("0", example, sample).tolist()) <= set(range(low, high + 1))
    assert not DATA.like("0", torch.tensor([True]), "zeros").any()


def test_a_mask_keeps_its_infinities_and_they_are_no_part_of_the_range() -> None:
    mask = torch.tensor([[0.0, -torch.inf], [1.0, 0.5]])
    for sample in ("extremes", "drawn"):
        filled = DATA.like("0", mask, sample)
        assert filled[0, 1] == -torch.inf
        assert filled[filled.isfinite()].min() >= 0
        assert filled[filled.isfinite()].max() <= 1
    assert not DATA.like("0", torch.full((3,), -torch.inf), "zeros").any()


@pytest.mark.parametrize("sample", SAMPLES[1:])
def test_inputs_that_are_one_tensor_stay_one(sample: str) -> None:
    x, y = DATA.tensor("x", 3, 6), DATA.tensor("y", 3, 6)
    one, other, again = DATA.all_like((x, y, x), sample)
    assert one is again
    assert one is not other
    assert torch.equal(one, DATA.like("0", x, sample))
    assert torch.equal(other, DATA.like("1", y, sample))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn])
@pytest.mark.parametrize("sample", SAMPLES[1:])
def test_inputs_that_are_views_of_one_storage_stay_views_of_one(sample: str, dtype: torch.dtype) -> None:
    whole = DATA.tensor("x", 4, 6).relu().to(dtype)
    views = (whole[1:3], whole, whole.t(), whole[0, :1].expand(5, 1), whole)
    made = DATA.all_like(views, sample)
    assert made[1] is made[4]
    for view, of_sample in zip(views, made, strict=True):
        assert of_sample.untyped_storage().data_ptr() == made[1].untyped_storage().data_ptr()
        assert (of_sample.stride(), of_sample.storage_offset()) == (view.stride(), view.storage_offset())
    assert made[1].untyped_storage().data_ptr() != whole.untyped_storage().data_ptr()
    if sample != "zeros":
        assert len(np.unique(arrays.array_of(made[1]))) > 1


def test_an_input_that_is_a_part_of_another_keeps_to_its_own_range() -> None:
    whole = torch.cat([torch.arange(8), torch.arange(100, 200)])
    for sample in ("extremes", "drawn"):
        part, _ = DATA.all_like((whole[:8], whole), sample)
        assert 0 <= part.min() < part.max() <= 7


def test_inputs_share_memory_after_a_cast_as_before() -> None:
    x = DATA.tensor("x", 4, 6)
    index = torch.tensor([1, 2])
    one, part, kept, again = cast((x, x[1], index, x), torch.bfloat16)
    assert one is again
    assert kept is index
    assert (one.dtype, part.dtype) == (torch.bfloat16, torch.bfloat16)
    assert part.data_ptr() == one[1].data_ptr()
    assert torch.equal(one, x.to(torch.bfloat16))


def test_an_input_that_no_export_takes_is_named(snapshot: SnapshotAssertion) -> None:
    case = replace(make(), build=lambda data: Example(torch.nn.Identity(), ({"x": slice(3)},)))
    with pytest.raises(ZooError) as raised:
        example_of(case)
    assert screen(str(raised.value)) == snapshot


def test_a_number_that_may_change_is_refused(snapshot: SnapshotAssertion) -> None:
    dynamic = {"input": torch.export.Dim.DYNAMIC}
    case = replace(make(), build=lambda data: Example(torch.nn.Identity(), (3,), dynamic_shapes=dynamic))
    with pytest.raises(ZooError) as raised:
        example_of(case)
    assert screen(str(raised.value)) == snapshot


def test_a_case_names_the_samples_that_it_is_run_on() -> None:
    def one_input(data: Data) -> Example:
        return Example(torch.nn.Identity(), (data.tensor("x", 4),))

    case = Case(name="some-case", family="layers", guards="something", build=one_input)
    example = example_of(case)
    assert tuple(samples_of(case, example)) == SAMPLES
    assert samples_of(case, example)["example"] == (example.inputs,)
    assert tuple(samples_of(replace(case, run_on=("example", "drawn")), example)) == ("example", "drawn")


def test_a_case_without_inputs_is_run_once() -> None:
    case = make()
    assert samples_of(case, example_of(case)) == {"example": ((),)}
