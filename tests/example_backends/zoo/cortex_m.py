"""Cortex-M's quantizer and passes, each with a model of its own."""

import torch
from torch import nn

from executorch_goldens import Data, Example, case

#: The layout that CMSIS-NN takes of what has channels, and that the quantizer asks for.
NHWC = torch.channels_last


@case(guards="a linear layer: kernel sums made ahead of time", backends=("cortex-m",))
def linear(data: Data) -> Example:
    return Example(nn.Linear(12, 8), (data.tensor("x", 3, 12),))


@case(guards="two linear layers with a ReLU that is fused into the first", backends=("cortex-m",))
def linear_relu(data: Data) -> Example:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    return Example(model, (data.tensor("x", 3, 6),))


class Sum(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y) * y


@case(guards="an addition and a multiplication, each with multipliers and shifts", backends=("cortex-m",))
def arithmetic(data: Data) -> Example:
    return Example(Sum(), (data.tensor("x", 2, 6), data.tensor("y", 2, 6)))


@case(guards="a convolution with a ReLU6, per channel", backends=("cortex-m",))
def conv2d(data: Data) -> Example:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU6()).to(memory_format=NHWC)
    return Example(model, (data.tensor("x", 1, 3, 6, 6).to(memory_format=NHWC),))


@case(guards="a depthwise convolution, whose weights are stored in another order", backends=("cortex-m",))
def depthwise(data: Data) -> Example:
    model = nn.Conv2d(4, 4, 3, padding=1, groups=4).to(memory_format=NHWC)
    return Example(model, (data.tensor("x", 1, 4, 6, 6).to(memory_format=NHWC),))


@case(guards="a strided convolution and pools: maximum, and mean over all places", backends=("cortex-m",))
def pools(data: Data) -> Example:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1))
    model = model.to(memory_format=NHWC)
    return Example(model, (data.tensor("x", 1, 3, 8, 8).to(memory_format=NHWC),))


@case(guards="a softmax at CMSIS-NN's own scale", backends=("cortex-m",))
def softmax(data: Data) -> Example:
    return Example(nn.Sequential(nn.Linear(6, 4), nn.Softmax(dim=-1)), (data.tensor("x", 2, 6),))


class Turned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.permute(self.layer(x), (0, 2, 1))


@case(guards="a permutation of what a layer gives, in int8", backends=("cortex-m",))
def turned(data: Data) -> Example:
    return Example(Turned(), (data.tensor("x", 1, 3, 4),))


@case(guards="a hard swish, decomposed", backends=("cortex-m",))
def hardswish(data: Data) -> Example:
    return Example(nn.Sequential(nn.Linear(6, 8), nn.Hardswish()), (data.tensor("x", 2, 6),))


class Spotter(nn.Module):
    """The end of a keyword spotter: convolution, depthwise convolution, residual, mean, scores."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.scores = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = x + torch.relu(self.depthwise(x))
        return self.scores(x.mean((2, 3)))


@case(guards="a small network, whole: nothing is left to portable kernels", backends=("cortex-m",))
def spotter(data: Data) -> Example:
    return Example(Spotter().to(memory_format=NHWC), (data.tensor("x", 1, 1, 8, 8).to(memory_format=NHWC),))
