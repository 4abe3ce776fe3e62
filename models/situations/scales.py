"""Quantized operators whose operands share, or do not share, a scale; and tables over a range of codes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from executorch_goldens import Data, Example, case

INT16 = ("tosa-int16",)


class Squares(nn.Module):
    """A product and a sum of one value with itself."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x - 0.25
        return y * y, y + y


@case(guards="one value as both operands is dequantized once (#21725)", backends=("tosa-int", "xnnpack-int8"))
def value_with_itself(data: Data) -> Example:
    return Example(Squares(), (data.tensor("x", 2, 4),))


class SquareMatrix(nn.Module):
    """A product of a matrix with itself, and the larger of a value and itself."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.bmm(x, x), torch.maximum(x, x)


@case(guards="one matrix as both factors is dequantized once (#21725)", backends=("tosa-int",))
def matrix_with_itself(data: Data) -> Example:
    return Example(SquareMatrix(), (data.tensor("x", 2, 3, 3),))


class Cut(nn.Module):
    """A layer over part of another's output; the cut is only later seen to be a slice."""

    def __init__(self, cut: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(2, 3)
        self.cut = cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.cut(self.first(x)))  # type: ignore[no-any-return]


@case(
    guards="a part of a value with a scale of its own stays outside of a delegate (#21949)",
    backends=("xnnpack-int8",),
)
def part_between_layers(data: Data) -> Example:
    return Example(Cut(lambda y: torch.tensor_split(y, (2, 4), 1)[1]), (data.tensor("x", 2, 4),))


class Extremes(nn.Module):
    """The lesser and the greater of values of unequal ranges."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.minimum(x, y), torch.maximum(x, y)


@case(guards="minimum and maximum have a scale for each operand (#18009)", backends=("tosa-int",))
def extremes_of_two_ranges(data: Data) -> Example:
    return Example(Extremes(), (data.tensor("x", 2, 4, bits=5), data.tensor("y", 2, 4, bits=2)))


class ScalarRemainder(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.remainder(x, 0.375)


@case(
    guards="a quantized remainder by a number is one table (#18401)",
    backends=("tosa-int",),
)
def remainder_of_number(data: Data) -> Example:
    return Example(ScalarRemainder(), (data.tensor("x", 3, 5) + 2.0**-5,))


class Tabled(nn.Module):
    """Functions that become tables."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.sigmoid(x), torch.exp(x)


@case(
    guards="a table has an entry for each code of a range of 255 (#18973)",
    quantization="snorm-int8",
    backends=("tosa-int",),
    # Its range ends at 1, and exp goes on to 2.7.
    sqnr={"tosa-int": 5},
)
def tables_of_255_codes(data: Data) -> Example:
    return Example(Tabled(), (data.tensor("x", 4, 8),))


class OneTable(nn.Module):
    """A sine, which at the top of the range of its codes is neither flat nor beyond its own range."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(2.0 * x)


@case(
    guards="the last entry of an int16 table is the function's own value (#21629)", backends=INT16, also=INT16
)
def int16_table_to_the_top(data: Data) -> Example:
    return Example(OneTable(), (torch.linspace(-1.0, 1.0, 33).reshape(3, 11),))
