"""Eager float8: computed in float32 and rounded, with torch's own kernels wherever it has them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from executorch_goldens.exporting.data import Data
from executorch_goldens.exporting.eager import FLOAT8, Float8InFloat32
from executorch_goldens.exporting.targets import Lowering

DATA = Data("eager-test")

each_dtype = pytest.mark.parametrize("dtype", FLOAT8, ids=str)


def image(dtype: torch.dtype) -> torch.Tensor:
    return DATA.tensor("x", 1, 2, 6, 8).to(dtype)


CONV = nn.Conv2d(2, 3, kernel_size=3, padding=1)
LINEAR = nn.Linear(8, 5)
DATA.fill(CONV), DATA.fill(LINEAR)

OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda x: x + x.flip(2),
    "product": lambda x: torch.bmm(x[0], x[0].transpose(1, 2)),
    "sigmoid": torch.sigmoid,
    "pool": lambda x: functional.max_pool2d(x, 2),
    "mean": lambda x: functional.avg_pool2d(x, 2),
}


@each_dtype
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_without_a_kernel_is_computed_in_float32_and_rounded_once(
    name: str, dtype: torch.dtype
) -> None:
    x = image(dtype)
    with pytest.raises(NotImplementedError):
        OPERATORS[name](x)
    with Float8InFloat32():
        found = OPERATORS[name](x)
    assert found.dtype is dtype
    assert torch.equal(found.float(), OPERATORS[name](x.float()).to(dtype).float())


@each_dtype
@pytest.mark.parametrize("module", [CONV, LINEAR], ids=["convolution", "linear"])
def test_weights_are_widened_with_the_inputs(module: nn.Module, dtype: torch.dtype) -> None:
    narrow = nn.Module.to(module, dtype)  # Rounds the weights; back, they are those numbers.
    with torch.no_grad(), Float8InFloat32():
        found = narrow(image(dtype))
    with torch.no_grad():
        expected = narrow.float()(image(dtype).float()).to(dtype)
    assert found.dtype is dtype
    assert torch.equal(found.float(), expected.float())


def test_results_that_are_no_float8_keep_their_dtype() -> None:
    with Float8InFloat32():
        largest, places = functional.max_pool2d(image(FLOAT8[0]), 2, return_indices=True)
        less = image(FLOAT8[0]) < 0.5
    assert (largest.dtype, places.dtype, less.dtype) == (FLOAT8[0], torch.int64, torch.bool)


def test_what_torch_can_do_stays_its_own() -> None:
    x = image(FLOAT8[0])
    with Float8InFloat32():
        assert x.permute(0, 2, 3, 1).data_ptr() == x.data_ptr()
        assert torch.equal(x.float() + 1.0, x.to(torch.float32) + 1.0)


def test_an_operator_that_writes_to_its_input_is_refused_as_torch_does() -> None:
    with Float8InFloat32(), pytest.raises(NotImplementedError):
        image(FLOAT8[0]).sigmoid_()


def test_only_targets_of_float8_compute_it() -> None:
    with Lowering.named("tosa-fp8e5m2").eager():
        assert torch.sigmoid(image(FLOAT8[1])).dtype is FLOAT8[1]
    with Lowering.named("tosa-bf16").eager(), pytest.raises(NotImplementedError):
        torch.sigmoid(image(FLOAT8[1]))
