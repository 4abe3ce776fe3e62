"""Convolutions beyond the plain square one: fewer or more dimensions, groups, dilation, transposition."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class SequenceFilter(nn.Module):
    """A strided convolution over time, then a depthwise one, then a pointwise one."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.strided = nn.Conv1d(channels, features, kernel_size=4, stride=2, padding=1)
        self.depthwise = nn.Conv1d(features, features, kernel_size=3, dilation=2, padding=2, groups=features)
        self.pointwise = nn.Conv1d(features, channels, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pointwise(torch.relu(self.depthwise(self.strided(x))))  # type: ignore[no-any-return]


@case(guards="one-dimensional convolutions gain and lose their height: strided, depthwise, pointwise")
def conv1d(data: Data) -> Example:
    return Example(SequenceFilter(channels=3, features=4), (data.tensor("x", 1, 3, 13),))


class GroupedDilated(nn.Module):
    """Unequal kernels, strides, paddings and dilations over groups of channels; a remainder is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.grouped = nn.Conv2d(4, 6, (3, 2), stride=(2, 3), padding=(3, 1), dilation=(2, 1), groups=2)
        self.strided = nn.Conv2d(6, 3, kernel_size=2, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.strided(self.grouped(x))  # type: ignore[no-any-return]


@case(guards="a grouped, dilated, unevenly padded convolution is cut into groups; rows that do not fit go")
def conv2d_grouped_dilated(data: Data) -> Example:
    x = data.tensor("x", 1, 4, 10, 12).to(memory_format=torch.channels_last)
    return Example(GroupedDilated(), (x,))


class ScaledSeparable(nn.Module):
    """A depthwise convolution with a multiplier, a pointwise one scaled per channel, and a ReLU6."""

    scale: torch.Tensor

    def __init__(self, channels: int, multiplier: int, scale: torch.Tensor) -> None:
        super().__init__()
        features = channels * multiplier
        self.depthwise = nn.Conv2d(channels, features, (3, 5), stride=(1, 2), padding=(1, 2), groups=channels)
        self.pointwise = nn.Conv2d(features, len(scale), kernel_size=1)
        self.register_buffer("scale", scale.reshape(1, -1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu6(self.pointwise(self.depthwise(x)) * self.scale)


@case(
    guards="a depthwise convolution keeps its channel order; a scale per channel folds into the next weights"
)
def conv2d_depthwise_scaled(data: Data) -> Example:
    scale = 1.0 + data.tensor("scale", 4, bits=3, limit=4)
    return Example(ScaledSeparable(channels=3, multiplier=2, scale=scale), (data.tensor("x", 2, 3, 6, 7),))


class Upconvolution(nn.Module):
    """A transposed convolution with padding on its output, then one whose stride exceeds its kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.padded = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=(1, 0))
        self.sparse = nn.ConvTranspose2d(4, 2, 2, stride=3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sparse(torch.relu(self.padded(x)))  # type: ignore[no-any-return]


@case(guards="transposed convolutions arrange their weights once and pad their output")
def conv_transpose2d(data: Data) -> Example:
    return Example(Upconvolution(), (data.tensor("x", 1, 3, 4, 5),))


@case(
    guards="a three-dimensional convolution keeps depth, height and width apart in its weights",
    backends=("tosa",),
)
def conv3d(data: Data) -> Example:
    module = nn.Conv3d(2, 3, kernel_size=(2, 3, 1), stride=(1, 2, 1), padding=(1, 1, 0))
    return Example(module, (data.tensor("x", 1, 2, 3, 5, 4),))


@case(guards="a convolution over time is padded on both sides of its one dimension", backends=("tosa-fp",))
def padded_time(data: Data) -> Example:
    return Example(nn.Conv1d(2, 2, 3, padding=1), (data.tensor("x", 1, 2, 6),))


@case(
    guards="a convolution of one channel counts as depthwise, whatever its window", backends=("xnnpack-fp32",)
)
def one_channel(data: Data) -> Example:
    return Example(nn.Conv2d(1, 4, (2, 8), stride=(2, 1)), (data.tensor("x", 1, 1, 4, 9),))


@case(guards="ReLU6 becomes the bounds of the convolution before it", backends=("xnnpack-fp32",))
def bounded_convolutions(data: Data) -> Example:
    pointwise, depthwise = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 3, padding=1, groups=2)
    return Example(
        nn.Sequential(pointwise, nn.ReLU6(), depthwise, nn.ReLU6()), (data.tensor("x", 1, 2, 4, 4),)
    )
