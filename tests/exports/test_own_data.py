"""Data that a case brings itself: recorded inputs, calibration data, a quantizer, training, a metric."""

from __future__ import annotations

import importlib
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch.export import Dim

from executorch_goldens.artifact import Artifact, Cell, Lowered, Metric
from executorch_goldens.exporting.data import Data, Example, example_of
from executorch_goldens.exporting.entry import export
from executorch_goldens.goldens import accuracy, equality, rendering
from executorch_goldens.goldens.record import MANIFEST, Record
from executorch_goldens.judging import verdict
from executorch_goldens.zoo.registry import Case, ZooError, load
from executorch_goldens.zoo.targets import Target
from tests.support.making import ORIGIN, outcome
from tests.support.screens import measured, of_verdict

pytestmark = pytest.mark.usefixtures("own_flatc")


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


def case(**own: Any) -> Case:
    def build(data: Data) -> Example:
        return Example(Classifier(), (data.tensor("x", 1, 1, 8, 8),), **own)

    return Case("classifier", "tests", "something", build)


def lowered(of: Case, target: str) -> Lowered:
    made = export(of, target).result
    assert isinstance(made, Lowered), made
    return made


def said(artifact: Artifact, target: str) -> verdict.Verdict | None:
    cell = Cell(target, "classifier")
    return verdict.objection(cell, [outcome(artifact, cell)])


def image(seed: int, scale: float = 1.0) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(seed).standard_normal((1, 1, 8, 8)) * scale).astype(np.float32)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    file = tmp_path / "photos.npz"
    np.savez(file, **{"day/x": image(1), "night/x": image(2)})
    return file


@pytest.mark.parametrize("target", ["xnnpack-fp32", "tosa-int"])
@pytest.mark.slow
def test_a_program_is_judged_on_what_was_recorded(target: str, photos: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", image(3))
    artifact = export(case(recorded=(photos, tmp_path / "one.npz")), target)
    made = artifact.result
    assert isinstance(made, Lowered), made
    by_name = {sample.name: sample for sample in made.samples}
    assert list(by_name)[-3:] == ["photos/day", "photos/night", "one"]
    eager = example_of(case())
    expected = eager.module(torch.from_numpy(image(2))).detach().numpy()
    of = by_name["photos/night"]
    floats = of.floats[0] if target == "tosa-int" else of.expected[0]
    assert np.array_equal(floats.array(), expected)
    assert said(artifact, target) is None


@pytest.mark.parametrize("target", ["xnnpack-fp32", pytest.param("xnnpack-int8", marks=pytest.mark.slow)])
def test_an_exported_program_that_the_case_loads_is_lowered(
    target: str, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A float target lowers the program itself: nothing is exported again."""
    exported = torch.export.export(Classifier().eval(), (torch.ones(1, 1, 8, 8),))
    torch.export.save(exported, tmp_path / "classifier.pt2")

    def build(data: Data) -> Example:
        program = torch.export.load(tmp_path / "classifier.pt2")
        inputs = (data.tensor("x", 1, 1, 8, 8),)
        return Example(program.module(), inputs, fill=False, recorded=photos, program=program)

    def none(*args: Any) -> Any:
        raise AssertionError("it is exported again")

    if target == "xnnpack-fp32":
        monkeypatch.setattr("executorch_goldens.exporting.recipe.export_program", none)
    artifact = export(Case("classifier", "tests", "something", build), target)
    assert isinstance(artifact.result, Lowered), artifact.result
    assert {"photos/day", "photos/night"} <= {sample.name for sample in artifact.result.samples}
    assert said(artifact, target) is None


def test_what_is_wrong_on_what_was_recorded_alone_is_seen(photos: Path, snapshot: SnapshotAssertion) -> None:
    made = lowered(case(recorded=photos), "xnnpack-fp32")
    *right, last = made.samples
    wrong = replace(last, outputs=right[0].outputs)
    verdicts = said(Artifact(replace(made, samples=(*right, wrong)), ()), "xnnpack-fp32")
    assert measured(of_verdict(verdicts)) == snapshot


def test_files_are_relative_to_the_module_of_the_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_zoo_of_photos").mkdir()
    (tmp_path / "some_zoo_of_photos" / "__init__.py").write_text(
        "import torch\nfrom executorch_goldens import Example, case\n\n"
        "@case(guards='something')\ndef doubled(data):\n"
        "    return Example(torch.nn.Identity(), (data.tensor('x', 2),), recorded='data/some.npz')\n"
    )
    (tmp_path / "some_zoo_of_photos" / "data").mkdir()
    np.savez(tmp_path / "some_zoo_of_photos" / "data" / "some.npz", input=np.ones(2, np.float32))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    found = example_of(load(["some_zoo_of_photos"])["doubled"])
    assert torch.equal(found.recordings["some"][0], torch.ones(2))


def test_nested_inputs_are_recorded_by_their_path(tmp_path: Path) -> None:
    class Nested(torch.nn.Module):
        def forward(self, x: torch.Tensor, states: dict[str, Any], *, bias: torch.Tensor) -> torch.Tensor:
            return x + states["h"][0] + bias

    x = torch.ones(2)
    example = Example(Nested(), (x, {"h": [x]}), kwargs={"bias": torch.ones(1, dtype=torch.bfloat16)})
    arrays = {"x": np.full(2, 5.0, np.float32), "states.h.0": np.full(2, 5.0, np.float32)}
    np.savez(tmp_path / "a.npz", **arrays, bias=np.full(1, 0.5, np.float32))
    nested = Case("nested", "tests", "something", lambda data: replace(example, recorded=tmp_path / "a.npz"))
    one, other, bias = example_of(nested).recordings["a"]
    # One tensor in the example is one here.
    assert one is other
    assert bias.dtype is torch.bfloat16
    np.savez(tmp_path / "a.npz", **{**arrays, "x": np.ones(2, np.float32)}, bias=np.full(1, 0.5, np.float32))
    with pytest.raises(ZooError, match=r"states.h.0 and x are one tensor in the example, and two here"):
        example_of(nested)


class Obeyed:
    def __reduce__(self) -> Any:
        return (print, ("obeyed",))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"y": image(1)}, "sample bad: has the arrays y, and the inputs are x"),
        ({"x": image(1), "y": image(1)}, "has the arrays x, y, and the inputs are x"),
        ({"x": image(1)[0]}, "x is float32[1, 8, 8], and the example's is float32[1, 1, 8, 8]"),
        (
            {"x": image(1).astype(np.float64)},
            "x is float64[1, 1, 8, 8], and the example's is float32[1, 1, 8, 8]",
        ),
        ({"x": np.array(["a"])}, "x.npy: an array of <U1 and shape (1,) is none of numbers"),
        ({"zeros/x": image(1)}, ""),
        ({"a b/x": image(1)}, "sample 'bad/a b': is no name for one"),
        (
            {"x": np.array([Obeyed()], dtype=object)},
            "x.npy: an array of object and shape (1,) is none of numbers",
        ),
    ],
)
def test_a_recorded_file_that_does_not_fit_is_one_clear_error(
    arrays: dict[str, Any], said: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    of = case(recorded=tmp_path / "bad.npz")
    if not said:
        assert list(example_of(of).recordings) == ["bad/zeros"]
        return
    with pytest.raises(ZooError) as error:
        example_of(of)
    assert said in str(error.value)
    assert "case 'classifier' of tests.exports.test_own_data" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"no archive", "cannot be read"),
        (pickle.dumps(1), "cannot be read"),
        (b"", "cannot"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_one_clear_error(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(ZooError, match=said):
        example_of(case(recorded=tmp_path / "bad.npz"))


def test_a_recorded_sample_has_a_name_of_its_own(tmp_path: Path) -> None:
    np.savez(tmp_path / "drawn.npz", x=image(1))
    with pytest.raises(ZooError, match="sample 'drawn': is the name of another sample"):
        example_of(case(recorded=tmp_path / "drawn.npz"))


def test_another_size_may_be_recorded_where_a_dimension_may_change(tmp_path: Path) -> None:
    np.savez(tmp_path / "three.npz", x=np.concatenate([image(1)] * 3))
    batch = Dim("batch", min=1, max=4)
    found = example_of(case(recorded=tmp_path / "three.npz", dynamic_shapes=({0: batch},)))
    assert found.recordings["three"][0].shape == (3, 1, 8, 8)


# Calibration


def scale_of_input(made: Lowered) -> float:
    """Return the scale that the input is quantized by."""
    line = next(line for line in made.graph.splitlines() if "quantize_per_tensor" in line)
    return float(line.partition("(%x, ")[2].partition(",")[0])


@pytest.mark.slow
def test_a_case_calibrates_with_its_own_data(tmp_path: Path) -> None:
    plain = scale_of_input(lowered(case(), "tosa-int"))
    wide = [(torch.from_numpy(image(1)),), (torch.from_numpy(image(2, scale=8.0)),)]
    wider = scale_of_input(lowered(case(calibration=wide), "tosa-int"))
    assert wider > 4 * plain
    # The same from a file, and from what can be read once.
    np.savez(tmp_path / "own.npz", **{"a/x": wide[0][0].numpy(), "b/x": wide[1][0].numpy()})
    assert scale_of_input(lowered(case(calibration=tmp_path / "own.npz"), "tosa-int")) == wider

    def build(data: Data) -> Example:
        return Example(Classifier(), (data.tensor("x", 1, 1, 8, 8),), calibration=iter(wide))

    assert scale_of_input(lowered(Case("classifier", "tests", "something", build), "tosa-int")) == wider


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "calibration has no inputs"),
        ([torch.ones(1, 1, 8, 8)], "calibration 0 is no tuple of inputs"),
        ([({"x": torch.ones(1)},)], "calibration 0 is not nested as the inputs"),
        (
            [(torch.ones(1, 8),)],
            "calibration 0: x is float32[1, 8], and the example's is float32[1, 1, 8, 8]",
        ),
        (5, "calibration is no file and no inputs: 'int' object is not iterable"),
    ],
)
def test_calibration_that_does_not_fit_is_one_clear_error(given: Any, said: str) -> None:
    with pytest.raises(ZooError) as error:
        example_of(case(calibration=given))
    assert said in str(error.value)


# Quantizers


def int8_per_tensor(target: Target) -> Any:
    """Return a quantizer of XNNPACK's for its targets, and leave others as they are."""
    if target.backend != "xnnpack":
        return None
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=False))


@pytest.mark.slow
def test_a_case_has_a_quantizer_of_its_own_for_some_targets() -> None:
    own, plain = case(quantizer=int8_per_tensor), case()
    made = {target: (lowered(own, target), lowered(plain, target)) for target in ("xnnpack-int8", "tosa-int")}
    mine, theirs = made["xnnpack-int8"]
    assert mine.pte != theirs.pte
    mine, theirs = made["tosa-int"]
    assert mine.delegates[0].payload == theirs.delegates[0].payload


# Training


def train(prepared: torch.fx.GraphModule) -> None:
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.05)
    for _ in range(4):
        x = torch.randn(4, 1, 8, 8)[:1]
        loss = prepared(x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("target", ["xnnpack-int8", "tosa-int"])
@pytest.mark.slow
def test_a_case_trains_and_always_the_same(target: str) -> None:
    first = export(case(train=train), target)
    torch.manual_seed(77)
    second = export(case(train=train), target)
    assert isinstance(first.result, Lowered), first.result
    assert isinstance(second.result, Lowered)
    assert first.result.pte == second.result.pte
    untrained = lowered(case(train=lambda prepared: None), target)
    assert untrained.pte != first.result.pte
    assert first.result.delegates
    # A model that was trained is far from the one before, and within rounding of its own quantized graph.
    judged = said(first, target)
    assert ": useless quantization" in of_verdict(judged)
    anything = export(replace(case(train=train), sqnr={target: -math.inf}), target)
    assert said(anything, target) is None


class Counter(torch.nn.Module):
    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(8, 4)
        self.register_buffer("state", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)
        return self.head(self.state)


@pytest.mark.slow
def test_a_model_that_trains_starts_in_the_state_that_it_came_in() -> None:
    def build(data: Data) -> Example:
        return Example(Counter(), (data.tensor("x", 1, 8),), train=lambda prepared: None)

    made = export(Case("counter", "tests", "something", build), "xnnpack-int8")
    assert said(made, "xnnpack-int8") is None


# Metrics


def right_answers(outputs: Any) -> float:
    """Return the part of the photos that are of class 0."""
    answers = [arrays[0].argmax() == 0 for arrays in outputs.values()]
    return float(np.mean(answers))


def seen(outputs: Any) -> float:
    seen.names = list(outputs)  # type: ignore[attr-defined]
    return 1.0


@pytest.mark.slow
def test_a_metric_measures_what_is_recorded_or_else_the_example(photos: Path) -> None:
    lowered(case(metric=seen, recorded=photos), "xnnpack-fp32")
    assert seen.names == ["photos/day", "photos/night"]  # type: ignore[attr-defined]
    assert lowered(case(metric=seen, bound=0.5), "xnnpack-fp32").metric == Metric("seen", 1.0, 1.0, 0.5)
    assert seen.names == ["example"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", ["xnnpack-fp32", "tosa-int"])
@pytest.mark.slow
def test_a_metric_below_its_bound_is_wrong_beside_the_numbers(target: str, photos: Path) -> None:
    within = export(case(metric=right_answers, bound=0.0, recorded=photos), target)
    assert said(within, target) is None
    assert isinstance(within.result, Lowered)
    beyond = export(case(metric=right_answers, bound=1.5, recorded=photos), target)
    objection = said(beyond, target)
    value = within.result.metric.value
    why = f"right_answers is {value:.4g}, and at least 1.5 is asked for; the eager model has {value:.4g}"
    assert of_verdict(objection).splitlines()[0].endswith(f": {why}")
    assert objection.excess is None


def test_a_golden_has_the_metric_and_compares_it_within_a_tolerance() -> None:
    made = lowered(case(metric=right_answers, bound=0.0), "xnnpack-fp32")
    texts = rendering.render(Artifact(made, ()), ORIGIN)
    (line,) = [line for line in texts.texts()[MANIFEST].splitlines() if line.startswith("accuracy ")]
    assert line.startswith("accuracy right_answers: metric ")

    def measured_as(value: float) -> Record:
        measured = replace(made, metric=Metric("right_answers", value, 0.95, 0.5))
        return rendering.render(Artifact(measured, ()), ORIGIN)

    assert equality.equal(measured_as(0.9), measured_as(0.9001))
    assert not equality.equal(measured_as(0.9), measured_as(0.8))
    assert accuracy.is_worse(
        *(measured_as(value).accuracies["accuracy right_answers"] for value in (0.9, 0.8))
    )


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        pytest.param(
            lambda outputs: "good", "the metric metric gives 'good', and no number", marks=pytest.mark.slow
        ),
        (lambda outputs: outputs["photos"], "the metric metric raises KeyError: 'photos'"),
    ],
)
def test_a_metric_that_gives_no_number_is_one_clear_error(metric: Any, said: str) -> None:
    made = export(case(metric=metric), "xnnpack-fp32").result
    assert said in getattr(made, "message", "")


def test_a_metric_is_a_function() -> None:
    with pytest.raises(ZooError, match=r"metric of case 'classifier' of .* is no function but a float"):
        example_of(case(metric=0.5))


def test_a_nan_is_below_every_bound() -> None:
    assert Metric("m", float("nan"), 1.0, 0.0).falls_short()
