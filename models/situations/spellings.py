"""One operator written in several ways: arguments left out, one number for two, dimensions counted from the front."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class PoolsWithDefaults(nn.Module):
    """Pools with a kernel and nothing else: their stride is the kernel, their padding none."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            torch.ops.aten.max_pool2d.default(x, [2, 3]),
            torch.ops.aten.avg_pool2d.default(x, [2, 3]),
        )


@case(guards="a pool without a stride strides by its kernel (#21489)", backends=("tosa", "xnnpack-int8"))
def pools_without_stride(data: Data) -> Example:
    return Example(PoolsWithDefaults(), (data.tensor("x", 1, 2, 4, 6),))


class PoolsOfOneNumber(nn.Module):
    """Pools whose kernel, stride and padding are lists of one number."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            torch.ops.aten.max_pool2d.default(x, [3], [2], [1]),
            torch.ops.aten.avg_pool2d.default(x, [2], [2]),
        )


@case(guards="a pool's one number holds for both dimensions (#21489)", backends=("xnnpack",))
def pools_of_one_number(data: Data) -> Example:
    return Example(PoolsOfOneNumber(), (data.tensor("x", 1, 2, 6, 4),))


class UnpaddedAverage(nn.Module):
    """Averages that count padding, and have none."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.avg_pool2d(x, 2), functional.avg_pool2d(x, 3, stride=1, count_include_pad=True)


@case(
    guards="an average pool that counts its padding, but has none, is taken (#21862)",
    backends=("xnnpack-fp32",),
)
def average_pools_unpadded(data: Data) -> Example:
    return Example(UnpaddedAverage(), (data.tensor("x", 1, 2, 4, 6),))


class ConvOfOneNumber(nn.Module):
    """A convolution whose stride, padding and dilation are lists of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 2, 3, 2))
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.conv2d.default(  # type: ignore[no-any-return]
            x, self.weight, self.bias, [2], [1], [1]
        )


@case(guards="a convolution's one number holds for both dimensions (#21588)")
def conv_of_one_number(data: Data) -> Example:
    return Example(ConvOfOneNumber(), (data.tensor("x", 1, 2, 5, 6),))


class ImageMeans(nn.Module):
    """Means over height and width, counted from the front, from the end, and in the other order."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.mean(x, (2, 3), keepdim=True),
            torch.mean(x, (-1, -2), keepdim=True),
            torch.mean(x, (3, -2), keepdim=True),
        )


@case(guards="a mean over height and width is taken however they are counted (#19206)", backends=("xnnpack",))
def image_means(data: Data) -> Example:
    return Example(ImageMeans(), (data.tensor("x", 1, 2, 4, 2),))


class ChosenScalars(nn.Module):
    """Elements or a number, by a comparison."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.where(x > y, x, 0.25), torch.where(x > y, x + y, -1.0)


@case(guards="a where whose other value is a number is lowered as with a tensor (#18132)", backends=("tosa",))
def where_number(data: Data) -> Example:
    return Example(ChosenScalars(), (data.tensor("x", 2, 4), data.tensor("y", 2, 4) + 2.0**-5))


class WholePowers(nn.Module):
    """One power of a sum, with a whole exponent."""

    def __init__(self, exponent: int) -> None:
        super().__init__()
        self.exponent = exponent

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.pow(x, self.exponent)


@case(guards="a power of zero still reads its input (#19637)", backends=("tosa-fp",))
def power_of_zero(data: Data) -> Example:
    return Example(WholePowers(0), (data.tensor("x", 2, 4),))


@case(guards="a power of one is its input, and a delegate computes it", backends=("tosa-fp",))
def power_of_one(data: Data) -> Example:
    return Example(WholePowers(1), (data.tensor("x", 2, 4),))
