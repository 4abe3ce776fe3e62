"""Resizes whose ratio is no whole number: which pixel is read depends on the mode and on how the ratio is said."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Resize(nn.Module):
    """One resize, to sizes or by factors."""

    def __init__(
        self,
        mode: str,
        size: tuple[int, int] | None = None,
        factor: tuple[float, float] | None = None,
        corners: bool | None = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.size = size
        self.factor = factor
        self.corners = corners

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(
            x, size=self.size, scale_factor=self.factor, mode=self.mode, align_corners=self.corners
        )


@case(guards="a nearest resize to a size samples where torch does (#22437)", backends=("tosa-fp",))
def resize_nearest_to_size(data: Data) -> Example:
    return Example(Resize("nearest", size=(7, 3)), (data.tensor("x", 1, 2, 5, 8),))


@case(
    guards="a nearest resize by a non-integer scale_factor samples by it, not by the ratio of the sizes (#22437)",
    backends=("tosa-fp",),
)
def resize_nearest_by_factor(data: Data) -> Example:
    return Example(Resize("nearest", factor=(1.6, 2.5)), (data.tensor("x", 1, 2, 4, 5),))


@case(guards="a nearest resize that halves keeps the first of each two (#22437)", backends=("tosa-int",))
def resize_nearest_halved(data: Data) -> Example:
    return Example(Resize("nearest", factor=(0.5, 0.25)), (data.tensor("x", 1, 2, 6, 8),))


@case(guards="a bilinear resize by a ratio that is no whole number weighs its neighbours", backends=("tosa",))
def resize_bilinear_to_size(data: Data) -> Example:
    return Example(Resize("bilinear", size=(6, 5), corners=False), (data.tensor("x", 1, 2, 4, 3),))


@case(
    guards="a resize to less than a sixteenth, beyond what RESIZE allows, stays outside the delegate (#19151)",
    backends=("tosa",),
)
def resize_beyond_a_sixteenth(data: Data) -> Example:
    return Example(Resize("nearest", size=(1, 2)), (data.tensor("x", 1, 2, 20, 4),))
