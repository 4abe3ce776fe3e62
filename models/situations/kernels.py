"""Convolutions whose kernel, stride, groups or neighbours make a backend rewrite them."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case

INT16 = ("tosa-int16",)


def uneven(data: Data, conv: nn.ConvTranspose2d, dimension: int) -> Transposed:
    """Return `conv` with weights that get smaller by quarters along `dimension`: no two channels share a scale."""
    data.fill(conv)
    sizes = [1] * conv.weight.dim()
    sizes[dimension] = -1
    with torch.no_grad():
        conv.weight *= (0.25 ** torch.arange(conv.weight.shape[dimension])).reshape(sizes)
    return Transposed(conv).eval()


class Transposed(nn.Module):
    """One transposed convolution, optionally followed by a batch norm."""

    def __init__(self, conv: nn.ConvTranspose2d, norm: bool = False) -> None:
        super().__init__()
        self.conv = conv
        self.norm = nn.BatchNorm2d(conv.out_channels) if norm else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))  # type: ignore[no-any-return]


@case(
    guards="a transposed convolution that leaves a remainder reads all of its input (#19391)",
    backends=("tosa-fp",),
)
def transposed_conv_remainder(data: Data) -> Example:
    return Example(Transposed(nn.ConvTranspose2d(2, 3, 2, stride=3)), (data.tensor("x", 1, 2, 6, 4),))


@case(
    guards="a transposed convolution with an even kernel and output padding is taken (#18185, #19391)",
    backends=("tosa-int", "xnnpack-int8"),
)
def transposed_conv_even(data: Data) -> Example:
    conv = nn.ConvTranspose2d(2, 3, (4, 2), stride=(3, 2), padding=(1, 0), output_padding=(1, 1))
    return Example(Transposed(conv), (data.tensor("x", 1, 2, 3, 4),))


@case(guards="scales of a transposed convolution in groups lie along its groups (#17842)", backends=("tosa",))
def transposed_conv_groups(data: Data) -> Example:
    module = uneven(data, nn.ConvTranspose2d(3, 3, 2, stride=2, groups=3), dimension=0)
    return Example(module, (data.tensor("x", 1, 3, 3, 3),), fill=False)


@case(
    guards="scales of a transposed convolution are observed along its output channels (#17842)",
    backends=("tosa",),
)
def transposed_conv_narrowing(data: Data) -> Example:
    module = uneven(data, nn.ConvTranspose2d(4, 2, 3, stride=2), dimension=1)
    return Example(module, (data.tensor("x", 1, 4, 3, 3),), fill=False)


@case(
    guards="a batch norm folds into a transposed convolution along its output channels (#22517)",
    backends=("tosa", "xnnpack-fp32"),
)
def transposed_conv_norm(data: Data) -> Example:
    return Example(
        Transposed(nn.ConvTranspose2d(3, 3, 2, stride=2), norm=True), (data.tensor("x", 1, 3, 3, 3),)
    )


@case(
    guards="a batch norm folds into a transposed convolution in groups, group by group (#22517)",
    # Quantization folds it before any backend does, and cannot in groups.
    backends=("tosa-fp",),
)
def transposed_conv_norm_groups(data: Data) -> Example:
    conv = nn.ConvTranspose2d(4, 4, 2, stride=2, groups=2)
    return Example(Transposed(conv, norm=True), (data.tensor("x", 1, 4, 3, 3),))


class Clamped(nn.Module):
    """A convolution or a linear layer, followed by a clamp that starts below zero."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.clamp = nn.Hardtanh(-0.5, 0.75)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.clamp(self.layer(x))  # type: ignore[no-any-return]


@case(
    guards="a convolution finds its scale at a clamp that is not fused into it (#18778)",
    backends=("tosa-int",),
)
def conv_clamped(data: Data) -> Example:
    return Example(Clamped(nn.Conv2d(2, 3, 3)), (data.tensor("x", 1, 2, 5, 5),))


@case(
    guards="a linear layer finds its scale at a clamp that is not fused into it (#18778)",
    backends=("tosa-int",),
)
def linear_clamped(data: Data) -> Example:
    return Example(Clamped(nn.Linear(4, 3)), (data.tensor("x", 2, 4),))


class SharedConv(nn.Module):
    """One convolution used twice, each time with a batch norm of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 1, bias=False)
        self.first = nn.BatchNorm2d(2)
        self.second = nn.BatchNorm2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.conv(self.first(self.conv(x))))  # type: ignore[no-any-return]


@case(guards="one convolution with two batch norms gets weights for each (#18031)")
def shared_conv_norms(data: Data) -> Example:
    return Example(SharedConv(), (data.tensor("x", 1, 2, 3, 4),))


class SummedAround(nn.Module):
    """A convolution of a sum, whose result is summed again."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.conv(x + y) + x  # type: ignore[no-any-return]


@case(
    guards="an int16 convolution between sums keeps its bias and its scale (#21910)",
    backends=INT16,
    also=INT16,
)
def int16_conv_between_sums(data: Data) -> Example:
    return Example(SummedAround(), (data.tensor("x", 1, 2, 4, 4), data.tensor("y", 1, 2, 4, 4)))


class OfSum(nn.Module):
    """A convolution of a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.conv(x + y)  # type: ignore[no-any-return]


@case(guards="an int16 convolution of a sum keeps its bias (#17155)", backends=INT16, also=INT16)
def int16_conv_of_sum(data: Data) -> Example:
    return Example(OfSum(), (data.tensor("x", 1, 2, 4, 4), data.tensor("y", 1, 2, 4, 4)))


class ReadTwice(nn.Module):
    """A convolution that a sum reads, and that is an output as well."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.conv(x)
        return y, y.permute(0, 2, 1) + 1.0


@case(
    guards="an int16 convolution that is read as int16 and as int32 gives both (#21910)",
    backends=INT16,
    also=INT16,
)
def int16_conv_read_twice(data: Data) -> Example:
    return Example(ReadTwice(), (data.tensor("x", 1, 2, 5),))
