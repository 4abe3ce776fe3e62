"""Quantizations that lose the model's computation, and the floor that a case accepts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from torch import nn
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

from executorch_goldens.artifact import Cell
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.building import Build
from executorch_goldens.exporting.data import Data, Example, example_of
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics.bare import change
from executorch_goldens.exporting.numerics.programs import flatten
from executorch_goldens.exporting.numerics.quantizing import convert, export_program
from executorch_goldens.exporting.observers import GridObserver
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.goldens.findings import LostSignal
from executorch_goldens.judging.verdict import Verdict, objection
from executorch_goldens.zoo.registry import Case, Registry, ZooError, load
from executorch_goldens.zoo.targets import TARGETS, TargetError
from tests.support import zoo_builds
from tests.support.making import outcome
from tests.support.screens import of_verdict

pytestmark = pytest.mark.usefixtures("own_flatc")


class Attention(nn.Module):
    """Causal attention over six steps.

    Parameters
    ----------
    hide
        Hides what is masked in the scores, which it takes with the mask.
    """

    def __init__(self, data: Data, hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        for name, parameter in self.named_parameters():
            steps = data.generator(name).integers(-8, 9, parameter.shape)
            parameter.data = torch.tensor(steps / 8.0, dtype=torch.float32)
        self.register_buffer("mask", torch.ones(6, 6).triu(1).bool())
        self.hide = hide

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(-1, -2) / math.sqrt(8)
        return torch.softmax(self.hide(scores, self.mask), -1) @ self.value(x)


LOWEST = torch.finfo(torch.float32).min


def attending(hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[[Data], Example]:
    def build(data: Data) -> Example:
        steps = data.generator("x").integers(-8, 9, (1, 6, 8))
        return Example(Attention(data, hide), (torch.tensor(steps / 8.0, dtype=torch.float32),))

    return build


def judged(build: Callable[[Data], Example], target: str, **settings: Any) -> Verdict | None:
    """Return the objection to a case; None without one."""
    case, cell = Case("attending", "tests", "something", build, **settings), Cell(target, "attending")
    found = objection(cell, [outcome(export(case, target), cell)])
    return found


def added(number: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda scores, mask: scores + torch.zeros(6, 6).masked_fill(mask, number)


@pytest.mark.parametrize(
    ("target", "hide", "operator"),
    [
        # Arm's quantizer makes them -255: one code is more than all scores.
        ("tosa-int", lambda scores, mask: scores.masked_fill(mask, LOWEST), "aten.where.self where"),
        ("tosa-int", added(-math.inf), "aten.add.Tensor add"),
        # XNNPACK's quantizes the sum, at no scale that there is for minus infinity.
        ("xnnpack-int8", added(LOWEST), "aten.add.Tensor add"),
        ("xnnpack-int8", added(-math.inf), "aten.add.Tensor add"),
    ],
    ids=["tosa-where", "tosa-sum", "xnnpack-sum", "xnnpack-infinity"],
)
@pytest.mark.slow
def test_a_mask_that_takes_all_codes_is_named_with_its_scale(
    target: str, hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], operator: str
) -> None:
    found = judged(attending(hide), target)
    assert found.name == "imprecise"
    assert ": useless quantization: output 0 is " in of_verdict(found)
    assert f"the floor of {target} is 20 dB" in of_verdict(found)
    named = of_verdict(found)
    assert re.search(rf"quantizing {operator}: scale \S+, zero point \S+, range ", named), named
    (lost,) = found.findings
    assert isinstance(lost, LostSignal)
    assert lost.by.endswith(" in codes -128 to 127")


@pytest.mark.slow
def test_a_quantization_whose_values_are_compared_is_not_named_for_what_it_costs_alone() -> None:
    """2.997 is not 3, and both are equal once the value compared with 3 is quantized as well."""
    case, cell = replace(load(("models",))["scaled-attention"], sqnr={}), Cell("tosa-int", "scaled-attention")
    found = objection(cell, [outcome(export(case, "tosa-int"), cell)])
    assert ": useless quantization: output 1 is " in of_verdict(found)
    named = of_verdict(found)
    assert "quantizing aten.add.Tensor add" in named, named
    assert "arange" not in named, named


@pytest.mark.slow
def test_a_case_that_accepts_so_little_is_not_refused() -> None:
    build = attending(added(LOWEST))
    found = judged(build, "xnnpack-int8", sqnr={"xnnpack-int8": -math.inf})
    assert found is None or "useless" not in of_verdict(found)


@pytest.mark.slow
def test_a_mask_of_a_sensible_size_is_no_useless_quantization() -> None:
    found = judged(attending(added(-8.0)), "xnnpack-int8")
    assert found is None or "useless" not in of_verdict(found)


class Normed(nn.Module):
    """A convolution whose batch norm is quantized with it, and a batch norm of its own, with variances near nothing."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        # Statistics stay as they are in training.
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, eps=eps, momentum=0.0)
        self.alone = nn.BatchNorm2d(4, eps=eps, momentum=0.0)
        for norm in (self.norm, self.alone):
            norm.running_var.fill_(1e-3)  # type: ignore[union-attr]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.alone(torch.relu(self.norm(self.conv(x))))


def normed(eps: float, data: Data, **settings: Any) -> Example:
    model = Normed(eps)
    model.conv.weight.data = data.tensor("weight", 4, 3, 3, 3, bits=6)
    return Example(model, (data.tensor("x", 1, 3, 8, 8),), fill=False, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["xnnpack-int8", "tosa-int"])
def test_a_model_that_trains_keeps_the_eps_and_the_momentum_of_its_batch_norms(target: str) -> None:
    build = partial(normed, 0.05, train=lambda prepared: None)
    case, lowering = Case("normed", "tests", "something", build), Lowering.named(target)
    example = example_of(case)
    program = export_program(example.module, example)
    converted = convert(lowering, case, example, program, fold=False)
    plain, call = compat.graph_module(program), example.call
    with torch.no_grad():
        floats = flatten(plain(*example.inputs))
        assert change(plain, converted, call, [example.tensors], floats, 0) is None


@pytest.mark.slow
def test_a_build_whose_training_changes_its_batch_norms_is_told_the_operator_and_no_sqnr() -> None:
    def build(build: Build) -> object:
        example = normed(0.05, build.data)
        build.method(example.module, example.inputs)
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_qat=True))
        program = torch.export.export(example.module.train(), example.inputs, strict=True)
        prepared = prepare_qat_pt2e(program.module(check_guards=False), quantizer)
        prepared(*example.inputs)
        move_exported_model_to_eval(prepared)
        return zoo_builds.to_xnnpack(build.quantized(convert_pt2e(prepared)), example.inputs)

    case, cell = Case("normed", "tests", "something", build, is_build=True), Cell("built", "normed")
    found = objection(cell, [outcome(export(case, "built"), cell)])
    first = "not quantization: without it the model already differs, first in aten.conv2d.default conv2d"
    assert f": {first}" in of_verdict(found)
    assert "batch_norm.default batch_norm of norm (False, 0.0, 0.05, " in of_verdict(found)
    assert not any("named values" in line or "sqnr=" in line for line in of_verdict(found).splitlines())


@pytest.mark.parametrize("least", [math.inf, math.nan, "3", True], ids=str)
def test_an_sqnr_that_is_no_number_of_decibels_is_refused(least: Any) -> None:
    case = Case("some-case", "tests", "something", attending(torch.where), sqnr={"tosa-int": least})
    with pytest.raises(ZooError, match=r"sqnr: .* of tosa-int is no number of dB"):
        Registry().add(case)


def test_only_a_quantized_target_has_a_floor() -> None:
    with pytest.raises(TargetError, match="floor: only a quantized target has one"):
        replace(TARGETS["tosa-fp"], floor=20.0)
    with pytest.raises(TargetError, match="floor: nan is no finite number"):
        replace(TARGETS["tosa-int"], floor=math.nan)
    assert {name for name, target in TARGETS.items() if target.floor is None} == {
        name for name, target in TARGETS.items() if not target.is_quantized
    }


def test_the_ends_of_an_observer_on_the_grid_stay_numbers() -> None:
    observer = GridObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    observer(torch.tensor([LOWEST, 0.0, 1.0]))
    scale, _ = observer.calculate_qparams()
    assert scale.isfinite().all()
