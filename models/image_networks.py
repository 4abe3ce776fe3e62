"""Whole image networks with the topologies of MLPerf Tiny, MobileNet V2 and V3, U-Net and ViT, with our own weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from executorch_goldens import Data, Example, case
from models.networks import SqueezeExcite


def conv_bn(
    channels: int, features: int, kernel: int = 3, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, nn.Module]:
    """Return a convolution without bias that keeps the size at stride 1, and its batch norm."""
    conv = nn.Conv2d(channels, features, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return conv, nn.BatchNorm2d(features)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside the identity, or beside a 1x1 convolution where the shape changes."""

    def __init__(self, channels: int, features: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *conv_bn(channels, features, stride=stride), nn.ReLU(), *conv_bn(features, features)
        )
        changes = stride != 1 or channels != features
        self.shortcut = nn.Conv2d(channels, features, 1, stride) if changes else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


@case(
    guards="MLPerf Tiny's ResNet-8: residual sums of two scales, strided shortcuts, nine convolutions",
    # Nine roundings in a row.
    imprecise={"tosa-int": 0.2},
)
def resnet8(data: Data) -> Example:
    module = nn.Sequential(
        *(*conv_bn(3, 16), nn.ReLU()),
        *(ResidualBlock(16, 16, 1), ResidualBlock(16, 32, 2), ResidualBlock(32, 64, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )
    return Example(module, (data.tensor("x", 1, 3, 32, 32),))


def separable(channels: int, features: int, stride: int = 1) -> nn.Sequential:
    """Return a depthwise 3x3 and a pointwise convolution, each with a bias, as after batch norm folded, and ReLU."""
    depthwise = nn.Conv2d(channels, channels, 3, stride, padding=1, groups=channels)
    return nn.Sequential(depthwise, nn.ReLU(), nn.Conv2d(channels, features, 1), nn.ReLU())


#: Features and stride of the 13 blocks of MobileNetV1 at width 0.25.
MOBILENET_V1 = (
    *((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)),
    *((128, 1), (128, 1), (128, 1), (128, 1), (128, 1), (256, 2), (256, 1)),
)


def chain(channels: int, blocks: Sequence[tuple[int, int]]) -> nn.Sequential:
    """Return the separable blocks of `blocks`, one after the other."""
    modules = []
    for features, stride in blocks:
        modules.append(separable(channels, features, stride))
        channels = features
    return nn.Sequential(*modules)


@case(guards="MLPerf Tiny's MobileNetV1 0.25: 27 convolutions in a row, half of them depthwise")
def mobilenet_v1(data: Data) -> Example:
    module = nn.Sequential(
        *(*conv_bn(3, 8, stride=2), nn.ReLU()),
        chain(8, MOBILENET_V1),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 2)),
    )
    return Example(module, (data.tensor("x", 1, 3, 32, 32),))


class KeywordSeparable(nn.Module):
    """The DS-CNN of MLPerf Tiny: a wide first kernel over time and frequency, then separable blocks."""

    def __init__(self, features: int, words: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, features, kernel_size=(10, 4), stride=2, padding=(5, 1), bias=False),
            nn.BatchNorm2d(features),
            nn.ReLU(),
        )
        self.blocks = chain(features, [(features, 1)] * 4)
        self.head = nn.Linear(features, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))  # type: ignore[no-any-return]


@case(
    guards="MLPerf Tiny's DS-CNN: an oblong strided kernel, separable blocks, a mean over both axes",
    also=("tosa-fp+int", "tosa-u55"),
)
def ds_cnn(data: Data) -> Example:
    return Example(KeywordSeparable(features=64, words=12), (data.tensor("x", 1, 1, 49, 10),))


class Bottleneck(nn.Module):
    """MobileNetV2's inverted residual: ReLU6 twice, a linear projection, the sum only where shapes agree."""

    def __init__(self, channels: int, features: int, stride: int) -> None:
        super().__init__()
        wide = 4 * channels
        self.body = nn.Sequential(
            *(*conv_bn(channels, wide, kernel=1), nn.ReLU6()),
            *(*conv_bn(wide, wide, stride=stride, groups=wide), nn.ReLU6()),
            *conv_bn(wide, features, kernel=1),
        )
        self.adds = stride == 1 and channels == features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return x + y if self.adds else y  # type: ignore[no-any-return]


@case(
    guards="a MobileNetV2: ReLU6 folds into its convolutions, linear bottlenecks keep their sign",
    # A dozen roundings in a row.
    imprecise={"xnnpack-int8": 0.2},
)
def mobilenet_v2(data: Data) -> Example:
    module = nn.Sequential(
        *(*conv_bn(3, 8, stride=2), nn.ReLU6()),
        *(Bottleneck(8, 8, 1), Bottleneck(8, 12, 2), Bottleneck(12, 12, 1)),
        *(*conv_bn(12, 32, kernel=1), nn.ReLU6()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5)),
    )
    return Example(module, (data.tensor("x", 1, 3, 16, 16),))


class GatedBottleneck(nn.Module):
    """MobileNetV3's block: a 5x5 depthwise convolution, hard swish, squeeze-excite before the projection."""

    def __init__(self, channels: int, features: int, stride: int) -> None:
        super().__init__()
        wide = 3 * channels
        self.body = nn.Sequential(
            *(*conv_bn(channels, wide, kernel=1), nn.Hardswish()),
            *(*conv_bn(wide, wide, kernel=5, stride=stride, groups=wide), nn.Hardswish()),
            SqueezeExcite(wide, channels),
            *conv_bn(wide, features, kernel=1),
        )
        self.adds = stride == 1 and channels == features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return x + y if self.adds else y  # type: ignore[no-any-return]


@case(guards="a MobileNetV3: hard swish and hard sigmoid, gates of one pixel scale whole planes")
def mobilenet_v3(data: Data) -> Example:
    module = nn.Sequential(
        *(*conv_bn(3, 8, stride=2), nn.Hardswish()),
        *(GatedBottleneck(8, 8, 1), GatedBottleneck(8, 12, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        *(nn.Linear(12, 16), nn.Hardswish(), nn.Linear(16, 5)),
    )
    return Example(module, (data.tensor("x", 1, 3, 16, 16),))


def double_conv(channels: int, features: int) -> nn.Sequential:
    """Return two 3x3 convolutions with bias and ReLU."""
    first = nn.Conv2d(channels, features, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), nn.Conv2d(features, features, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    """Two levels down by pooling, one up by a transposed convolution, one by nearest neighbours."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.outer_in = double_conv(channels, features)
        self.inner_in = double_conv(features, 2 * features)
        self.floor = double_conv(2 * features, 2 * features)
        self.up = nn.ConvTranspose2d(2 * features, 2 * features, kernel_size=2, stride=2)
        self.inner_out = double_conv(4 * features, features)
        self.outer_out = nn.Conv2d(2 * features, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outer = self.outer_in(x)
        inner = self.inner_in(nn.functional.max_pool2d(outer, 2, 2))
        floor = self.floor(nn.functional.max_pool2d(inner, 2, 2))
        y = self.inner_out(torch.cat((self.up(floor), inner), dim=1))
        y = nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")
        return self.outer_out(torch.cat((y, outer), dim=1))  # type: ignore[no-any-return]


@case(
    guards="a U-Net: skips concatenate tensors of unequal scales, made far apart, in the right order",
    backends=("tosa-int", "xnnpack"),
)
def unet(data: Data) -> Example:
    return Example(UNet(channels=2, features=4), (data.tensor("x", 1, 2, 16, 16),))
