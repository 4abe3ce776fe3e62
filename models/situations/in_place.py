"""Operators written in place, which a quantizer sees before anything makes functions of them."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case

#: Only before quantization are they still there.
QUANTIZED = ("tosa-int", "xnnpack-int8")


class LeakyInPlace(nn.Module):
    """A leaky ReLU in place after a linear layer, and one elsewhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.inner = nn.LeakyReLU(0.25, inplace=True)
        self.outer = nn.LeakyReLU(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(self.inner(self.linear(x)) - 0.5)  # type: ignore[no-any-return]


@case(guards="a leaky ReLU in place is lowered as one that is not (#16826)", backends=QUANTIZED)
def leaky_relu_in_place(data: Data) -> Example:
    return Example(LeakyInPlace(width=4), (data.tensor("x", 2, 4),))


class ArithmeticInPlace(nn.Module):
    """A sum, a difference, a product and a quotient, each written over its first operand."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x * 1.0
        z.add_(y)
        z.sub_(0.25)
        z.mul_(y)
        z.div_(2.0)
        return z


@case(guards="arithmetic in place is quantized as arithmetic that is not (#18231)", backends=QUANTIZED)
def arithmetic_in_place(data: Data) -> Example:
    return Example(ArithmeticInPlace(), (data.tensor("x", 2, 4), data.tensor("y", 2, 4)))


class NumberInPlace(nn.Module):
    """A number added in place, and the ReLU of the sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 0.5
        y += 0.25
        return torch.relu(y)


@case(
    guards="a number added in place before a ReLU is quantized with it, or not at all",
    backends=("xnnpack-int8",),
)
def number_in_place(data: Data) -> Example:
    return Example(NumberInPlace(), (data.tensor("x", 2, 4),))


class AccumulatedInPlace(nn.Module):
    """A convolution to which its input is added in place, as residual blocks do."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        y += x
        y *= 0.5
        return torch.relu_(y)


@case(guards="a residual sum in place is quantized with its own scale (#18231)", backends=QUANTIZED)
def residual_in_place(data: Data) -> Example:
    return Example(AccumulatedInPlace(channels=2), (data.tensor("x", 1, 2, 4, 4),))


class UnitsInPlace(nn.Module):
    """ReLU6, SiLU and hard tanh in place, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.units = nn.Sequential(nn.Hardtanh(-0.75, 1.0, inplace=True), nn.SiLU(inplace=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.units(x + 0.25) * 2.0  # type: ignore[no-any-return]


@case(guards="units in place keep their limits and scales", backends=QUANTIZED)
def units_in_place(data: Data) -> Example:
    return Example(UnitsInPlace(), (data.tensor("x", 2, 4),))
