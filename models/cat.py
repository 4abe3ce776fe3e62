"""Concatenations of constants, which quantized lowering folds: every list element must be dequantized.

The ramps and the quantizer settings are those of issue #18971, so that its figures can be compared. The
ramps are made in the forward, as there: a buffer would be folded before the backend's own folding is reached.
The horizontal ramp is therefore the one input of the zoo that is not dyadic (steps of 0.4).
"""

from __future__ import annotations

import torch

from executorch_goldens import Data, Example, case

HEIGHT = 4
WIDTH = 5


def horizontal() -> torch.Tensor:
    """Return the ramp -0.8 .. 0.8 along the width, shape (1, 1, 4, 5)."""
    edge = 1.0 - 1.0 / WIDTH
    return torch.linspace(-edge, edge, WIDTH).view(1, 1, 1, WIDTH).expand(1, 1, HEIGHT, WIDTH)


def vertical() -> torch.Tensor:
    """Return the ramp -0.75 .. 0.75 along the height, shape (1, 1, 4, 5)."""
    edge = 1.0 - 1.0 / HEIGHT
    return torch.linspace(-edge, edge, HEIGHT).view(1, 1, HEIGHT, 1).expand(1, 1, HEIGHT, WIDTH)


class HorizontalVertical(torch.nn.Module):
    def forward(self) -> torch.Tensor:
        return torch.cat((horizontal(), vertical()), dim=1)


class VerticalHorizontal(torch.nn.Module):
    def forward(self) -> torch.Tensor:
        return torch.cat((vertical(), horizontal()), dim=1)


class HorizontalTwice(torch.nn.Module):
    def forward(self) -> torch.Tensor:
        h = horizontal()
        return torch.cat((h, h), dim=1)


class VerticalTwice(torch.nn.Module):
    def forward(self) -> torch.Tensor:
        v = vertical()
        return torch.cat((v, v), dim=1)


class ThreeRamps(torch.nn.Module):
    """The third element repeats the first: its position in the list is not its position among the inputs."""

    def forward(self) -> torch.Tensor:
        h = horizontal()
        return torch.cat((h, vertical(), h), dim=1)


class CatOfCats(torch.nn.Module):
    """The outer concatenation folds only after the inner ones did."""

    def forward(self) -> torch.Tensor:
        h, v = horizontal(), vertical()
        return torch.cat((torch.cat((h, v), dim=1), torch.cat((v, h), dim=1)), dim=1)


@case(
    guards="a folded cat of (h, v) dequantizes its second element",
    issue=18971,
    quantization="snorm-int8",
    constant_outputs=True,
    backends=("tosa-int", "xnnpack-fp32"),
)
def cat_h_v(data: Data) -> Example:
    return Example(HorizontalVertical(), ())


@case(
    guards="a folded cat of (v, h) dequantizes its second element: the order of the list matters",
    issue=18971,
    quantization="snorm-int8",
    constant_outputs=True,
    backends=("tosa", "xnnpack-fp32"),
)
def cat_v_h(data: Data) -> Example:
    return Example(VerticalHorizontal(), ())


@case(
    guards="a folded cat of one constant twice: the control where issue #18971 hides",
    quantization="snorm-int8",
    constant_outputs=True,
    backends=("tosa-fp", "xnnpack"),
)
def cat_h_h(data: Data) -> Example:
    return Example(HorizontalTwice(), ())


@case(
    guards="a folded cat of the other constant twice: the second control",
    quantization="snorm-int8",
    constant_outputs=True,
    backends=("tosa-fp", "xnnpack"),
)
def cat_v_v(data: Data) -> Example:
    return Example(VerticalTwice(), ())


@case(
    guards="a folded cat of three, one of them repeated, dequantizes every element",
    issue=18971,
    quantization="snorm-int8",
    constant_outputs=True,
    backends=("tosa-int", "xnnpack"),
)
def cat_three(data: Data) -> Example:
    return Example(ThreeRamps(), ())


@case(
    guards="a cat of folded cats carries the inner quantization parameters outwards",
    issue=18971,
    quantization="snorm-int8",
    constant_outputs=True,
    backends=("tosa-int", "xnnpack"),
)
def cat_of_cats(data: Data) -> Example:
    return Example(CatOfCats(), ())
