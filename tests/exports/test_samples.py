"""Samples of a lowered program besides its example: other sizes, and several steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch.export import Dim

from executorch_goldens.artifact import Cell, Lowered, Tensor
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics import samples
from executorch_goldens.exporting.numerics.samples import samples_of
from executorch_goldens.judging import verdict
from executorch_goldens.zoo.registry import SAMPLES, Case, load
from tests.support.making import outcome
from tests.support.screens import measured, of_verdict

ZOO = load(("models",))

pytestmark = pytest.mark.usefixtures("own_flatc")


def shapes_of(example: Example) -> dict[str, list[tuple[int, ...]]]:
    case = Case("some-case", "tests", "something", lambda data: example)
    found = samples_of(case, example)
    assert list(found)[: len(SAMPLES)] == list(SAMPLES)
    return {name: [tuple(x.shape) for x in found[name][-1]] for name in found if name not in SAMPLES}


def example(*shapes: tuple[int, ...], dynamic: object) -> Example:
    inputs = tuple(Data("samples").tensor(str(number), *shape) for number, shape in enumerate(shapes))
    return Example(torch.nn.Identity(), inputs, dynamic_shapes=dynamic)


BATCH = Dim("batch", min=1, max=8)


@pytest.mark.parametrize(
    ("dynamic", "least", "largest"),
    [
        (({0: BATCH}, {0: BATCH}), [(1, 4), (1, 4)], [(8, 4), (8, 4)]),
        ({"x": {0: BATCH}, "y": None}, [(1, 4), (3, 4)], [(8, 4), (3, 4)]),
        (((BATCH, None), None), [(1, 4), (3, 4)], [(8, 4), (3, 4)]),
        # Without limits: twice the example's. What is a multiple of another dimension is one.
        (({0: Dim("n"), 1: 2 * Dim("m")}, None), [(2, 4), (3, 4)], [(6, 8), (3, 4)]),
        # More than can be run on every sample: twice the example's.
        (({0: Dim("rows", min=3, max=1 << 30)}, None), None, [(6, 4), (3, 4)]),
        ((None, None), None, None),
        (None, None, None),
    ],
    ids=["tuple", "names", "list", "without limits", "huge", "static", "none"],
)
def test_dynamic_dimensions_are_run_at_their_least_and_largest(
    dynamic: object, least: object, largest: object
) -> None:
    found = shapes_of(example((3, 4), (3, 4), dynamic=dynamic))
    assert found == {
        name: shapes for name, shapes in (("least", least), ("largest", largest)) if shapes is not None
    }


def test_another_size_has_the_range_and_the_layout_of_the_example() -> None:
    x = (Data("samples").tensor("x", 2, 3, 4, 4) + 5.0).to(memory_format=torch.channels_last)
    given = Example(torch.nn.Identity(), (x, x), dynamic_shapes=({0: BATCH}, {0: BATCH}))
    one, other = samples_of(Case("some-case", "tests", "something", lambda data: given), given)["largest"][0]
    assert one is other
    assert one.shape == (8, 3, 4, 4)
    assert one.is_contiguous(memory_format=torch.channels_last)
    assert float(x.min()) <= float(one.min()) < float(one.max()) <= float(x.max())


def judged(case: str, target: str) -> Lowered:
    artifact = export(ZOO[case], target)
    made = artifact.result
    assert isinstance(made, Lowered), made
    cell = Cell(target, case)
    assert verdict.objection(cell, [outcome(artifact, cell)]) is None
    return made


@pytest.mark.parametrize("target", [pytest.param("tosa-fp", marks=pytest.mark.slow), "xnnpack-fp32"])
def test_a_dynamic_program_is_right_at_each_size(target: str) -> None:
    made = judged("dynamic-batch", target)
    given = {sample.name: sample.outputs[0].shape for sample in made.samples}
    assert given == {**dict.fromkeys(SAMPLES, (3, 3)), "least": (1, 3), "largest": (8, 3)}


@pytest.mark.parametrize(
    "target",
    ["xnnpack-fp32", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tosa-fp", "xnnpack-int8"))],
)
def test_a_state_is_kept_from_step_to_step(target: str) -> None:
    made = judged("call-counter", target)
    names = [sample.name for sample in made.samples]
    assert names == [*SAMPLES, *samples.STEPS]
    x = ZOO["call-counter"].build(Data("call-counter")).inputs[0].numpy()
    (third,) = (sample for sample in made.samples if sample.name == "third step")
    if "int" in target:
        # Calibrated with the first step, it saturates; eager does too.
        return
    # The counter has counted two calls with other inputs.
    extremes = np.where(third.outputs[0].array() > (x.min() + x.max()) + 3.0, x.max(), x.min())
    assert np.abs(third.outputs[0].array() - (2.0 * extremes + 3.0)).max() <= 0.1


@pytest.mark.parametrize("case", ["call-counter", pytest.param("running-state", marks=pytest.mark.slow)])
def test_a_state_that_quantization_makes_a_constant_of_is_corrupt(
    case: str, snapshot: SnapshotAssertion
) -> None:
    """The quantized eager graph has lost it as well."""
    artifact = export(ZOO[case], "tosa-int")
    made = artifact.result
    assert isinstance(made, Lowered)
    assert all(each.outputs == each.expected for each in made.samples)
    cell = Cell("tosa-int", case)
    found = verdict.objection(cell, [outcome(artifact, cell)])
    assert measured(of_verdict(found)) == snapshot


def test_a_program_that_forgets_its_state_is_corrupt(snapshot: SnapshotAssertion) -> None:
    artifact = export(ZOO["running-state"], "xnnpack-fp32")
    made = artifact.result
    assert isinstance(made, Lowered)
    *before, third = made.samples
    assert third.name == "third step"
    (extremes,) = (sample for sample in made.samples if sample.name == "extremes")
    # What it gives where that is its first step.
    forgotten = replace(third, outputs=tuple(Tensor.from_array(x.array()) for x in extremes.outputs))
    artifact = replace(artifact, result=replace(made, samples=(*before, forgotten)))
    cell = Cell("xnnpack-fp32", "running-state")
    found = verdict.objection(cell, [outcome(artifact, cell)])
    assert measured(of_verdict(found)) == snapshot
