"""Ranges snap to the grid: never inwards by more than the slack, and not by a last bit."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from executorch_goldens.exporting.observers import SLACK, STEPS, GridObserver, on_grid

LIMITS = st.floats(min_value=2.0**-20, max_value=2.0**20)


@given(LIMITS)
def test_a_limit_is_rounded_outwards_to_at_most_the_next_step(value: float) -> None:
    snapped = on_grid(value)
    assert value * (1 - 2 * SLACK) <= snapped <= value * (1 + 2 / STEPS)
    assert on_grid(-value) == -snapped


@given(LIMITS)
def test_what_is_on_the_grid_stays(value: float) -> None:
    assert on_grid(on_grid(value)) == on_grid(value)


@given(st.integers(1, 2**10), st.integers(-10, 10))
def test_a_last_bit_beside_a_dyadic_value_does_not_matter(numerator: int, exponent: int) -> None:
    value = math.ldexp(numerator, exponent)
    ulps = [value * (1 + k * 2.0**-23) for k in (-4, -1, 0, 1, 4)]
    assert len({on_grid(v) for v in ulps}) == 1


@pytest.mark.parametrize("value", [0.0, math.inf, -math.inf])
def test_zero_and_infinities_are_left(value: float) -> None:
    assert on_grid(value) == value


def test_an_observer_gives_the_scale_of_the_snapped_range() -> None:
    observer = GridObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine, quant_min=-128, quant_max=127)
    observer(torch.tensor([-0.9, 1.01]))
    scale, zero_point = observer.calculate_qparams()
    # -0.9 becomes -0.9375, 1.01 becomes 1.125.
    assert scale.item() == pytest.approx((0.9375 + 1.125) / 255)
    assert zero_point.item() == round(-128 + 0.9375 / scale.item())


def test_a_last_bit_in_what_is_observed_reaches_no_scale() -> None:
    def scale(value: float) -> float:
        observer = GridObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine)
        observer(torch.tensor([0.0, value]))
        return float(observer.calculate_qparams()[0].item())

    below, above = (torch.nextafter(torch.tensor(0.7315), torch.tensor(to)).item() for to in (0.0, 1.0))
    assert below != above
    assert scale(below) == scale(above)
