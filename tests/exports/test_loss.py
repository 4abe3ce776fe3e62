"""Quantizations that lose the model's computation, and the floor that a case accepts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.observers import GridObserver
from executorch_goldens.judging.verdict import Verdict, objection
from executorch_goldens.zoo.registry import Case, Registry, ZooError, load
from executorch_goldens.zoo.targets import TARGETS, TargetError
from tests.support.making import outcome

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
    if found is not None:
        print(f"{found.name}: {cell}: {found.reason}", *found.detail, sep="\n  ")
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
    assert found is not None
    assert found.name == "imprecise"
    assert found.reason.startswith("useless quantization: output 0 is ")
    assert f"the floor of {target} is 20 dB" in found.reason
    named = "\n".join(found.detail)
    assert re.search(rf"quantizing {operator}: scale \S+, zero point \S+, range ", named), named
    assert found.loses is not None
    assert found.loses.endswith(" in codes -128 to 127")


@pytest.mark.slow
def test_a_quantization_whose_values_are_compared_is_not_named_for_what_it_costs_alone() -> None:
    """2.997 is not 3, and both are equal once the value compared with 3 is quantized as well."""
    case, cell = replace(load(("models",))["scaled-attention"], sqnr={}), Cell("tosa-int", "scaled-attention")
    found = objection(cell, [outcome(export(case, "tosa-int"), cell)])
    assert found is not None
    assert found.reason.startswith("useless quantization: output 1 is ")
    named = "\n".join(found.detail)
    assert "quantizing aten.add.Tensor add" in named, named
    assert "arange" not in named, named


@pytest.mark.slow
def test_a_case_that_accepts_so_little_is_not_refused() -> None:
    build = attending(added(LOWEST))
    found = judged(build, "xnnpack-int8", sqnr={"xnnpack-int8": -math.inf})
    assert found is None or "useless" not in found.reason


@pytest.mark.slow
def test_a_mask_of_a_sensible_size_is_no_useless_quantization() -> None:
    found = judged(attending(added(-8.0)), "xnnpack-int8")
    assert found is None or "useless" not in found.reason


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
