"""The judged samples: without those on which the model, torch or TOSA leave the result open."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch._higher_order_ops.while_loop import while_loop

from executorch_goldens.artifact import Cell, Lowered, Tensor
from executorch_goldens.exporting.data import Data
from executorch_goldens.exporting.numerics.programs import without_meaning
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.goldens.decisions import KNOWN, Decision, Decisions
from executorch_goldens.judging.comparison import compare, numerics_of
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import SAMPLES
from tests.exports.conftest import exported
from tests.support.making import lowered_by, objection, outcome
from tests.support.screens import measured, of_verdict

RELEASE = releases.load().release(version("executorch"))

pytestmark = pytest.mark.usefixtures("own_flatc")


class Acosh(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.acosh(x)


class Product(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + y * z


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * scale, scale + 1.0


class Widened(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32) * 2.0


class Doubling(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2.0) + 1.0


class Tripling(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.mul_(3.0)
        return x + y


class Doubled(torch.nn.Module):
    """Doubles until it is large: never, if it is nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def is_small(x: torch.Tensor) -> torch.Tensor:
            return x.abs().sum() < 100.0

        return while_loop(is_small, lambda x: (x * 2.0,), (x,))[0]


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (rows, columns), torch.tensor(1.0))


DRAWN = Data("export-test")


def test_a_sample_that_the_model_has_no_meaning_for_is_not_judged_and_the_golden_says_so() -> None:
    # acosh(0) is no number: the reference model calls it unpredictable.
    artifact = exported(Acosh(), DRAWN.tensor("x", 2, 9).abs() + 1.5)
    made = lowered_by(artifact)
    assert [sample.name for sample in made.samples] == ["example", "extremes", "drawn"]
    assert made.unjudged == (("zeros", "eager is not finite"),)
    assert objection(artifact) is None
    assert numerics_of(artifact).text().endswith("; not judged on zeros: eager is not finite")


class Shifted(torch.nn.Module):
    def forward(self, x: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (x << (one + other)) + 1


class Root(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0.5, (x - 0.5).pow(0.5), x)


def test_a_sample_on_which_torch_leaves_open_what_comes_out_is_not_judged() -> None:
    one = torch.tensor([20, 1, 20, 2, 20, 3], dtype=torch.int32)
    artifact = exported(Shifted(), torch.arange(6, dtype=torch.int32), one, one.flip(0), target="tosa-int")
    made = lowered_by(artifact)
    why = "eager is undefined: aten.__lshift__.Tensor shifts by bits that an integer of 32 does not have"
    assert ("extremes", why) in made.unjudged
    assert "example" in {sample.name for sample in made.samples}
    assert objection(artifact) is None
    assert why in numerics_of(artifact).text()


def test_a_program_that_no_sample_can_be_judged_on_is_not_run_and_says_why(
    snapshot: SnapshotAssertion,
) -> None:
    shifts = torch.full((6,), 40, dtype=torch.int32)
    artifact = exported(Shifted(), torch.arange(6, dtype=torch.int32), shifts, shifts, target="tosa-int")
    made = lowered_by(artifact)
    assert not made.samples
    assert made.not_run.startswith("eager is undefined: aten.__lshift__")
    assert objection(artifact) is None
    assert numerics_of(artifact).text() == f"not run: {made.not_run}"
    cell = Cell("tosa-int", "some-case")
    outcomes = [outcome(artifact, cell)]
    assert of_verdict(compare(cell, outcomes, None, RELEASE).verdict) == snapshot
    # Nor is what is known to be wrong said to be right.
    defect = Decision(
        KNOWN, "corrupt", why="wrong where it is run", cells=(str(cell),), releases=(RELEASE.version,)
    )
    judged = compare(cell, outcomes, None, RELEASE, Decisions(Path(), RELEASE.version, (defect,))).verdict
    assert (judged.name, judged.known) == ("corrupt", defect.why)
    assert of_verdict(judged) == snapshot


def test_a_sample_that_leaves_the_domain_of_an_operator_is_not_judged_where_tosa_leaves_it_open() -> None:
    artifact = exported(Root(), DRAWN.tensor("x", 2, 9).abs() + 0.5)
    made = lowered_by(artifact)
    (why,) = {why for _, why in made.unjudged}
    assert why.startswith("TOSA leaves open what comes out: aten.pow")
    assert [sample.name for sample in made.samples] == ["example", "extremes", "drawn"]
    assert objection(artifact) is None


def test_what_lowering_alone_leaves_open_is_wrong(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    def run(*_: object) -> None:
        raise RuntimeError("the TOSA reference model says GraphStatus.TOSA_UNPREDICTABLE")

    monkeypatch.setattr("executorch_goldens.exporting.numerics.programs.run_model", run)
    found = objection(exported(torch.nn.ReLU(), DRAWN.tensor("x", 2, 9)))
    assert of_verdict(found) == snapshot


def test_a_model_that_changes_its_input_gets_each_sample_as_it_is() -> None:
    x = DRAWN.tensor("x", 2, 9)
    before = x.clone()
    artifact = exported(Doubling(), x)
    assert objection(artifact) is None
    changed, expected = lowered_by(artifact).samples[0].expected
    assert np.array_equal(changed.array(), before.numpy() * 2.0)
    assert np.array_equal(expected.array(), before.numpy() * 2.0 + 1.0)
    assert torch.equal(x, before)


@pytest.mark.parametrize("target", ["tosa-fp", pytest.param("xnnpack-fp32", marks=pytest.mark.slow)])
def test_an_input_that_a_model_changes_is_an_output_ahead_of_the_others(
    target: str, snapshot: SnapshotAssertion
) -> None:
    artifact = exported(Tripling(), DRAWN.tensor("x", 2, 9), DRAWN.tensor("y", 2, 9), target=target)
    assert objection(artifact) is None
    made = lowered_by(artifact)
    (changed, _), (given, _) = made.samples[0].expected, made.samples[0].outputs
    assert np.array_equal(changed.array(), 3.0 * DRAWN.tensor("y", 2, 9).numpy())
    off = Tensor.from_array(given.array() + 1.0)
    first, *others = made.samples
    wrong = replace(first, outputs=(off, *first.outputs[1:]))
    found = objection(replace(artifact, result=replace(made, samples=(wrong, *others))))
    assert measured(of_verdict(found)) == snapshot


def test_a_sample_on_which_the_model_raises_is_not_judged() -> None:
    # Of a mask without a true value there are no rows for two columns.
    mask = torch.tensor([True, False, True])
    artifact = exported(Chosen(), DRAWN.tensor("x", 3, 4), mask, torch.tensor([0, 2]))
    made = artifact.result
    assert isinstance(made, Lowered), made
    assert ("zeros", "eager raises IndexError") in made.unjudged
    assert "example" in {sample.name for sample in made.samples}


def test_a_sample_on_which_the_model_does_not_end_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside this the example's time counts, a hundred times: a loop is compiled, once for each state of torch.
    monkeypatch.setattr("executorch_goldens.exporting.program.ENDLESS", 0.5)
    with torch.no_grad(), Lowering.named("tosa-fp+cf").eager():
        Doubled()(DRAWN.tensor("x", 2, 9))
    artifact = exported(Doubled(), DRAWN.tensor("x", 2, 9), target="tosa-fp+cf")
    made = lowered_by(artifact)
    assert [sample.name for sample in made.samples] == ["example", "extremes", "drawn"]
    assert made.unjudged == (("zeros", "eager does not end"),)
    assert numerics_of(artifact).text().endswith("; not judged on zeros: eager does not end")


def test_inputs_that_are_one_tensor_are_one_in_every_sample() -> None:
    x = DRAWN.tensor("x", 3, 6)
    artifact = exported(Product(), x, x, x)
    assert [sample.name for sample in lowered_by(artifact).samples] == list(SAMPLES)
    assert objection(artifact) is None


def test_a_tensor_without_dimensions_crosses_the_border_of_a_delegate() -> None:
    artifact = exported(Scaled(), DRAWN.tensor("x", 2, 9), torch.tensor(0.5))
    made = lowered_by(artifact)
    assert len(made.delegates) == 1
    assert made.samples[0].outputs[1].shape == ()
    assert objection(artifact) is None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_a_program_is_run_on_inputs_of_float8(dtype: torch.dtype) -> None:
    artifact = exported(Widened(), DRAWN.tensor("x", 2, 9).to(dtype))
    assert [sample.name for sample in lowered_by(artifact).samples] == list(SAMPLES)
    assert objection(artifact) is None


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({"example": [1.0, 2.0], "zeros": [np.nan, 2.0]}, ("zeros",)),
        ({"example": [1.0, 2.0], "zeros": [1.0, np.inf], "drawn": [0.0, 0.0]}, ("zeros",)),
        ({"example": [1.0, np.inf], "zeros": [1.0, np.nan]}, ()),
        ({"example": [1.0, np.inf], "zeros": [np.nan, 1.0]}, ("zeros",)),
        ({"example": [1.0, 2.0], "zeros": [np.nan]}, ("zeros",)),
        ({"example": [np.nan, 2.0], "zeros": [np.nan]}, ()),
        ({}, ()),
    ],
)
def test_a_sample_has_no_meaning_where_it_is_not_finite_and_the_example_is(
    outputs: dict[str, list[float]], expected: tuple[str, ...]
) -> None:
    given = {name: (Tensor.from_array(np.float32(values)),) for name, values in outputs.items()}
    assert without_meaning(given) == expected
