"""Observers whose ranges do not follow the last bit of the observed values.

A kernel of another instruction set may give an exponential, and so the largest value of a tensor, another last bit.
A scale computed from it would differ in its last bit as well, and with it every golden of the cell. `OnGrid` rounds a
range outwards to a coarse grid before it computes scale and zero point.
"""

from __future__ import annotations

import math

import torch
from torchao.quantization.pt2e import HistogramObserver, MinMaxObserver
from torchao.quantization.pt2e.observer import UniformQuantizationObserverBase

#: Steps of the grid within one power of two.
STEPS = 8
#: A limit this much (relative) beyond a step still counts as the step: values that are steps themselves, a softmax over
#: equal logits for instance, come out a few units in the last place (6e-8) on either side of it.
SLACK = 2.0**-12


def on_grid(value: float) -> float:
    """Round `value` away from zero to a multiple of 1/`STEPS` of the power of two below it.

    >>> [on_grid(x) for x in (0.0, 1.0, 1.0000001, 1.01, -1.9, 3.3, 0.3)]
    [0.0, 1.0, 1.0, 1.125, -2.0, 3.5, 0.3125]
    """
    if value == 0.0 or not math.isfinite(value):
        return value
    step = 2.0 ** math.floor(math.log2(abs(value) * (1 - SLACK))) / STEPS
    return math.copysign(step * math.ceil(abs(value) * (1 - SLACK) / step), value)


class OnGrid(UniformQuantizationObserverBase):
    """An observer whose minimum and maximum are rounded outwards to the grid of `on_grid`."""

    def _calculate_qparams(
        self, min_val: torch.Tensor, max_val: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (scale, zero point), each of shape (1,) or ()."""
        most = torch.finfo(min_val.dtype).max
        low, high = (
            # Outwards of the largest number there is only infinity.
            torch.full_like(
                limit, grid if math.isinf(grid := on_grid(limit.item())) else min(max(grid, -most), most)
            )
            for limit in (min_val, max_val)
        )
        return super()._calculate_qparams(low, high)  # type: ignore[no-any-return]


class GridObserver(OnGrid, MinMaxObserver):
    """One for each tensor that takes the smallest and the largest value."""


class GridHistogramObserver(OnGrid, HistogramObserver):
    """One for each tensor that takes the ends between which a histogram loses least: the releases' own choice."""
