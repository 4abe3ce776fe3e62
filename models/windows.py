"""Windows that differ by axis, or lie wide apart: of convolutions and pools. Each model is a few small operators."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Windows(nn.Module):
    """Convolutions side by side; their outputs are one row."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([layer(x).flatten(1) for layer in self.layers], dim=1)


@case(
    guards="kernels, strides and dilations keep their axes: patches as in a vision transformer, rows and columns apart"
)
def convolution_windows(data: Data) -> Example:
    model = Windows(
        nn.Conv2d(2, 3, 4, stride=4),
        nn.Conv2d(2, 2, (1, 2), dilation=(1, 4)),
        nn.Conv2d(2, 2, (2, 1), dilation=(4, 1)),
        nn.Conv2d(2, 2, (1, 2), dilation=(1, 2)),
    )
    return Example(model, (data.tensor("x", 1, 2, 8, 8),))


@case(guards="a depthwise kernel and stride keep their axes, and paddings of two lie on both sides")
def depthwise_windows(data: Data) -> Example:
    model = Windows(
        nn.Conv2d(4, 4, (3, 2), stride=(2, 1), groups=4),
        nn.Conv2d(4, 4, 5, padding=2, groups=4),
    )
    return Example(model, (data.tensor("x", 1, 4, 6, 5),))


class WholePools(nn.Module):
    """Averages over all that there is: of an image, of its quarters, of single elements."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        quarters = functional.avg_pool2d(x, 4)
        whole = functional.adaptive_avg_pool2d(x, 1)
        single = functional.adaptive_avg_pool2d(whole, 1)
        return torch.cat([quarters.flatten(1), single.flatten(1)], dim=1)


@case(guards="an average over the whole image, and over images of one element, has the kernel of its input")
def whole_pools(data: Data) -> Example:
    return Example(WholePools(), (data.tensor("x", 1, 2, 6, 8),))


class CausalConvolutions(nn.Module):
    """Convolutions over time that see the past alone, at doubling distances."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(channels, channels, 3, dilation=step) for step in (1, 2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step, layer in zip((1, 2, 4), self.layers, strict=True):
            x = functional.relu(layer(functional.pad(x, (2 * step, 0))))
        return x


@case(guards="pads of one side stay on that side, before convolutions of one dimension at doubling dilations")
def causal_convolutions(data: Data) -> Example:
    return Example(CausalConvolutions(2), (data.tensor("x", 1, 2, 8),))
