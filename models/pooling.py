"""Pooling and normalisation."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class AveragePools(nn.Module):
    """Averages with different divisors: padding counted, not counted, or a divisor of its own."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.avg_pool2d(x, 2),
            functional.avg_pool2d(x, 3, stride=2, padding=1),
            functional.avg_pool2d(x, (2, 3), stride=2, padding=(1, 0), count_include_pad=False),
            functional.avg_pool2d(x, 3, stride=2, ceil_mode=True),
            functional.avg_pool2d(x, 2, divisor_override=2),
        )


@case(
    guards="average pools divide by the right count: padding, ceil_mode, count_include_pad, own divisor",
    also=("tosa-int16",),
)
def avg_pool(data: Data) -> Example:
    return Example(AveragePools(), (data.tensor("x", 1, 2, 6, 8),))


class MaxPools(nn.Module):
    """Maxima over windows that overlap, run over the edge, or have holes."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.max_pool2d(x, 3, stride=2, padding=1),
            functional.max_pool2d(x, (2, 3), stride=(2, 3), ceil_mode=True),
            functional.max_pool2d(x, 2, stride=1, dilation=2),
            functional.max_pool2d(x[0], 2),
        )


@case(guards="max pools pad with the least value, not zero; dilated, ceiled and unbatched ones are rewritten")
def max_pool(data: Data) -> Example:
    # Below zero throughout: a pool that pads with zeros shows.
    return Example(MaxPools(), (data.tensor("x", 1, 2, 7, 8) - 2.0,))


class AdaptivePools(nn.Module):
    """Adaptive averages whose windows divide the input, do not, or cover all of it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.adaptive_avg_pool2d(x, (3, 2)),
            functional.adaptive_avg_pool2d(x, (4, 3)),
            functional.adaptive_avg_pool2d(x, 1),
        )


@case(guards="adaptive pools over windows of unequal sizes become pools and concatenations in order")
def adaptive_pool(data: Data) -> Example:
    return Example(AdaptivePools(), (data.tensor("x", 1, 2, 6, 8),))


class RowNorms(nn.Module):
    """Layer norm over one and over two dimensions, and RMS norm."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.row = nn.LayerNorm(width)
        self.matrix = nn.LayerNorm((rows, width), bias=False)
        self.rms = nn.RMSNorm(width, eps=2.0**-10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.row(x), self.matrix(x), self.rms(x)


@case(
    guards="layer norms over one and two dimensions and RMS norm decompose to means, roots and products",
    also=("tosa-bf16",),
    backends=("tosa", "xnnpack-int8"),
)
def layer_norm(data: Data) -> Example:
    return Example(RowNorms(rows=4, width=6), (data.tensor("x", 2, 4, 6),))


class Maxima(nn.Module):
    """The largest along a dimension that stays."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.amax(x, 3, keepdim=True), torch.max(x, 2, keepdim=True)[0]


@case(guards="the largest of each row and of each column", backends=("xnnpack",))
def row_maxima(data: Data) -> Example:
    return Example(Maxima(), (data.tensor("x", 1, 2, 3, 8),))


class LargestOfRow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(x, -1)[0] + 1.0


@case(guards="the largest of each row, the dimension gone", backends=("xnnpack",))
def row_maximum_squeezed(data: Data) -> Example:
    return Example(LargestOfRow(), (data.tensor("x", 1, 2, 3, 8),))


class ChannelNorms(nn.Module):
    """Batch norms without a convolution before them, of images and rows, group norm and instance norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.image = nn.BatchNorm2d(channels)
        self.rows = nn.BatchNorm1d(channels)
        self.group = nn.GroupNorm(2, channels)
        self.instance = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.image(x), self.rows(x.flatten(2)), self.group(x), self.instance(x)


@case(guards="batch norms alone become products and sums; group and instance norms take their own statistics")
def channel_norms(data: Data) -> Example:
    return Example(ChannelNorms(channels=4), (data.tensor("x", 2, 4, 3, 4),))


class VectorNorms(nn.Module):
    """Norms, normalised rows, cosine similarity, variance and standard deviation."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.linalg.vector_norm(x, dim=-1, keepdim=True),
            torch.linalg.vector_norm(x, ord=1, dim=-1),
            functional.normalize(x, dim=-1),
            functional.cosine_similarity(x, y, dim=-1),
            torch.var(x, dim=(-2, -1), correction=0, keepdim=True),
            torch.std(x, dim=-1),
        )


@case(
    guards="vector norms, cosine similarity and variances decompose with their dimensions and corrections",
    run_on=("example", "extremes", "drawn"),
)
def vector_norms(data: Data) -> Example:
    # Shifted from zero: no row is short, and no similarity is near zero.
    return Example(VectorNorms(), (data.tensor("x", 2, 3, 6) + 0.5, data.tensor("y", 2, 3, 6) + 0.5))


@case(guards="a pool over the whole of eight by eight keeps its window", backends=("tosa-int",))
def pool_of_eight(data: Data) -> Example:
    return Example(nn.AvgPool2d(8), (data.tensor("x", 1, 2, 8, 8),))
