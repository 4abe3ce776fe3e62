"""Models that the pipeline lowers differently for Ethos-U55, whose hardware does less than TOSA requires."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case

U55 = ("tosa-u55",)


class OuterSum(nn.Module):
    """A column and a row, added and multiplied: each broadcasts the other."""

    def forward(self, column: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return column + row, column * row


@case(
    guards="two operands that broadcast each other; Ethos-U55 broadcasts one, the other is repeated", also=U55
)
def outer_sum(data: Data) -> Example:
    return Example(OuterSum(), (data.tensor("column", 1, 2, 5, 1), data.tensor("row", 1, 2, 1, 4)))


class Shuffle(nn.Module):
    """Permutations of three, four and five dimensions that move every dimension."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = x + 1.0
        return y[0].permute(2, 0, 1), y.permute(3, 1, 0, 2), y.reshape(2, 3, 2, 2, 5).permute(4, 2, 0, 3, 1)


@case(
    guards="permutations that Ethos-U55 cannot do at once are done in steps that compose to the same",
    also=U55,
)
def shuffled_dimensions(data: Data) -> Example:
    return Example(Shuffle(), (data.tensor("x", 2, 3, 4, 5),))


class StridedMaxima(nn.Module):
    """Maxima whose stride is beyond the three of Ethos-U55, and at it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.functional.max_pool2d(x, 4, stride=4), nn.functional.max_pool2d(x, 2, stride=3)


@case(guards="a max pool of a stride that Ethos-U55 lacks is decomposed into ones that it has", also=U55)
def strided_maxima(data: Data) -> Example:
    return Example(StridedMaxima(), (data.tensor("x", 1, 2, 8, 12),))


class NarrowShifts(nn.Module):
    """Shifts of int8 and int16 by constants."""

    def forward(self, n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return n >> 1, m << 2


@case(
    guards="shifts of narrow integers keep sign and width; Ethos-U55 shifts int32 only, so they are cast and back",
    also=U55,
    backends=("tosa",),
)
def narrow_shifts(data: Data) -> Example:
    narrow = (data.tensor(name, 3, 4, bits=0, limit=20) for name in "nm")
    return Example(
        NarrowShifts(), tuple(x.to(dtype) for x, dtype in zip(narrow, (torch.int8, torch.int16), strict=True))
    )
