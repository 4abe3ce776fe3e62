"""Single layers and short stacks of ordinary models."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


@case(
    guards="a linear layer: per-channel weight scales, int32 bias",
    also=("tosa-int16", "tosa-bf16", "tosa-fp8e4m3", "tosa-fp8e5m2", "xnnpack-dynamic"),
)
def linear(data: Data) -> Example:
    return Example(nn.Linear(12, 8), (data.tensor("x", 3, 12),))


class ConvBnRelu(nn.Module):
    """The stem of most image networks."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, features, kernel_size=3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x)))


@case(
    guards="batch norm and ReLU fold into their convolution, stride and padding kept",
    also=("tosa-int16", "tosa-fp+int", "tosa-bf16", "tosa-u55"),
)
def conv_bn_relu(data: Data) -> Example:
    return Example(ConvBnRelu(channels=3, features=8), (data.tensor("x", 1, 3, 12, 12),))


class SequenceTagger(nn.Module):
    """An LSTM over a sequence and a linear layer on its last step."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps, _ = self.lstm(x)
        return self.head(steps[:, -1])  # type: ignore[no-any-return]


@case(
    guards="an LSTM unrolls to gates in a stable order, with one copy of its weights",
    also=("tosa-int16", "xnnpack-dynamic"),
)
def lstm(data: Data) -> Example:
    return Example(SequenceTagger(features=6, hidden=8, classes=4), (data.tensor("x", 1, 4, 6),))


class PlainProducts(nn.Module):
    """A weight that is multiplied without the transposition of a linear layer, with a bias and without."""

    def __init__(self, inputs: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.addmm(self.bias, x, self.weight), torch.mm(x, self.weight)


@case(guards="a matrix product with a constant that is not transposed reads it the right way round")
def plain_products(data: Data) -> Example:
    return Example(PlainProducts(inputs=8, features=5), (data.tensor("x", 3, 8),))


@case(
    guards="a layer norm of float16 takes the mean and the deviation of rows of 256 elements",
    backends=("xnnpack-fp32",),
    releases=("1.2.0", "1.3.1", "1.4.1", "1.5.1"),
)
def narrow_layer_norm(data: Data) -> Example:
    return Example(nn.LayerNorm(256, elementwise_affine=False), (data.tensor("x", 2, 256).half(),))
