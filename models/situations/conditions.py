"""Conditions of passes that other cases do not meet: parameters that the caller gives, none, or more than a pass folds.

They are branches of passes of 1.4.1 that no cell took.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from executorch_goldens import Data, Example, case
from models.shapes import distinct

U55 = ("tosa-u55",)


class PlainNorms(nn.Module):
    """Batch norms without factors and terms of their own, alone and after a convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alone = nn.BatchNorm2d(channels, affine=False)
        self.conv = nn.Conv2d(channels, channels, kernel_size=2)
        self.behind = nn.BatchNorm2d(channels, affine=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.alone(x), self.behind(self.conv(x))


@case(guards="batch norms without factors and terms only take the mean away and divide")
def plain_norms(data: Data) -> Example:
    return Example(PlainNorms(channels=2), (data.tensor("x", 1, 2, 3, 4),))


class GivenNorms(nn.Module):
    """Batch norms with factors, terms or statistics from the caller."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, mean: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        norm = self.norm
        return (
            functional.batch_norm(x, norm.running_mean, norm.running_var, weight, norm.bias),
            functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, bias),
            functional.batch_norm(x, mean, norm.running_var, norm.weight, norm.bias),
        )


@case(
    guards="a batch norm whose parameters are inputs is folded into nothing",
    backends=("tosa", "xnnpack-int8"),
)
def given_norms(data: Data) -> Example:
    inputs = (data.tensor("x", 1, 2, 3, 4), *(data.tensor(name, 2) for name in ("weight", "bias", "mean")))
    return Example(GivenNorms(channels=2), inputs)


@case(
    guards="a batch norm of a volume is folded into the convolution before it, or stays outside",
    backends=("tosa",),
)
def volume_norm(data: Data) -> Example:
    module = nn.Sequential(nn.Conv3d(2, 3, kernel_size=(1, 2, 2)), nn.BatchNorm3d(3))
    return Example(module, (data.tensor("x", 1, 2, 2, 3, 4),))


class Scaled(nn.Module):
    """Products of convolutions that cannot be folded into the weights, each for a reason of its own."""

    columns: torch.Tensor
    counts: torch.Tensor
    volume: torch.Tensor

    def __init__(self, data: Data) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(2, 3, kernel_size=2) for _ in range(6))
        self.transposed = nn.ConvTranspose2d(2, 3, kernel_size=2)
        self.register_buffer("columns", data.tensor("columns", 3))
        self.register_buffer("counts", torch.tensor([1, 2, 3]).reshape(3, 1, 1))
        self.register_buffer("volume", data.tensor("volume", 1, 1, 3, 1, 1))

    def forward(self, x: torch.Tensor, factor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = [conv(x) for conv in self.convs]
        return (
            # A factor for each column; there are as many columns as channels.
            made[0] * self.columns,
            made[1] * self.counts,
            # One dimension more than the convolution has.
            made[2] * self.volume,
            # A factor for each batch entry and row.
            made[3] * self.columns[:2].reshape(1, 1, 2, 1),
            made[4] * factor,
            made[5] * 0.5 + made[5],
            self.transposed(x) * 0.75,
        )


@case(
    guards="a product after a convolution is folded into its weights only where it is a constant for each channel",
    backends=("tosa",),
)
def scaled_convolutions(data: Data) -> Example:
    return Example(Scaled(data), (data.tensor("x", 1, 2, 3, 4), data.tensor("factor", 1)))


class ScaledTogether(nn.Module):
    """Convolutions without bias, of two inputs: each times a number, and put together along the batch.

    Parameters
    ----------
    kernels
        How many of the two have a kernel of their own: one or two.
    """

    def __init__(self, kernels: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(2, 3, kernel_size=2, bias=False) for _ in range(kernels))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat((self.convs[0](x) * 0.5, self.convs[-1](y) * 0.75), dim=0)


def scaled_together(data: Data, kernels: int) -> Example:
    return Example(ScaledTogether(kernels), (data.tensor("x", 1, 2, 3, 4), data.tensor("y", 2, 2, 3, 4)))


@case(
    guards="a number is folded into the weights of a convolution that has no bias; batches stay in their order",
    backends=("tosa-fp",),
)
def convolutions_scaled_together(data: Data) -> Example:
    return scaled_together(data, kernels=2)


@case(guards="a kernel that two convolutions share is scaled for each of them", backends=("tosa-fp",))
def one_kernel_scaled_twice(data: Data) -> Example:
    return scaled_together(data, kernels=1)


class GivenKernel(nn.Module):
    """A convolution with weights from the caller, and one with a bias from the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Conv2d(2, 3, kernel_size=2)

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        conv2d = functional.conv2d
        return conv2d(x, weight, self.own.bias) * 0.75, conv2d(x, self.own.weight, bias) * 0.75


@case(guards="a convolution whose weights or bias are inputs is lowered with these, or stays outside")
def given_kernel(data: Data) -> Example:
    inputs = (data.tensor("x", 1, 2, 3, 4), data.tensor("weight", 3, 2, 2, 2), data.tensor("bias", 3))
    return Example(GivenKernel(), inputs)


class GroupedVolumes(nn.Module):
    """Convolutions of volumes in groups: two groups, and one for each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.grouped = nn.Conv3d(4, 4, kernel_size=2, groups=2, bias=False)
        self.depthwise = nn.Conv3d(4, 4, kernel_size=1, groups=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.depthwise(self.grouped(x))  # type: ignore[no-any-return]


@case(
    guards="convolutions of volumes in groups are cut into one for each group, depthwise ones too",
    also=("tosa-int16",),
    backends=("tosa",),
)
def conv3d_grouped(data: Data) -> Example:
    return Example(GroupedVolumes(), (data.tensor("x", 1, 4, 2, 3, 3),))


class Strides(nn.Module):
    """Convolutions at the strides, dilations and kernels that Ethos-U55 has, and beyond them."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            (
                nn.Conv2d(2, 3, 2, stride=4),
                nn.Conv2d(2, 3, 2, stride=4, padding=1),
                nn.Conv2d(2, 3, 2, stride=(1, 4), dilation=(1, 2)),
                nn.Conv2d(2, 3, (1, 65), padding=(0, 32)),
                nn.Conv2d(2, 4, 2, groups=2, stride=3, padding=1),
            )
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(conv(x) for conv in self.convs)


@case(
    guards="convolutions beyond the strides and kernels of Ethos-U55 stay outside, ones at its limits do not",
    also=U55,
    backends=U55,
)
def strided_convs(data: Data) -> Example:
    return Example(Strides(), (data.tensor("x", 1, 2, 6, 9),))


class TransposedStrides(nn.Module):
    """Transposed convolutions at the strides that Ethos-U55 has, and beyond them."""

    def __init__(self) -> None:
        super().__init__()
        strides = ((2, 2, 2), (2, 2, 3), (2, 2, (1, 2)), (2, 2, (2, 1)))
        self.images = nn.ModuleList(
            nn.ConvTranspose2d(2, out, kernel, stride) for out, kernel, stride in strides
        )
        self.row = nn.ConvTranspose2d(2, 2, (1, 2), stride=(1, 2))
        self.column = nn.ConvTranspose2d(2, 2, (2, 1), stride=(2, 1))
        self.tall = nn.ConvTranspose2d(2, 1, (65, 1))
        self.dilated = nn.ConvTranspose2d(2, 1, 2, dilation=2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        images = (conv(x) for conv in self.images)
        return (*images, self.row(x[:, :, :1]), self.column(x[..., :1]), self.tall(x), self.dilated(x))


@case(
    guards="transposed convolutions beyond the strides and kernels of Ethos-U55 stay outside",
    also=U55,
    backends=U55,
)
def transposed_strides(data: Data) -> Example:
    return Example(TransposedStrides(), (data.tensor("x", 1, 2, 3, 4),))


class Argmaxima(nn.Module):
    """Indices of the largest values: of all, of a kept dimension, of a middle one, and of integers."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.argmax(x).to(torch.int32),
            torch.argmax(x, dim=1, keepdim=True).to(torch.int32),
            torch.argmax(x, dim=-2).to(torch.int32),
            torch.argmax((x * 8.0).to(torch.int32), dim=1).to(torch.int32),
        )


@case(
    guards="argmax that TOSA does not have stays outside: of all values, of a dimension that stays, of int32",
    run_on=("example",),
    backends=("tosa-fp",),
)
def argmaxima(data: Data) -> Example:
    return Example(Argmaxima(), (distinct(data, "x", 3, 4, 2),))


class WideConstants(nn.Module):
    """Ranges and constants of int64: within int32, beyond it, and compared with an input of int64."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        near = torch.arange(4).to(torch.float32)
        far = torch.full((4,), 2**40, dtype=torch.int64).to(torch.float32)
        return x + near, x * 2.0**40 + far, x + (n > torch.arange(4)).to(torch.float32)


@case(
    guards="constants of int64 become int32 where they fit, and stay outside where they do not",
    backends=("tosa-fp", "xnnpack-fp32"),
)
def wide_constants(data: Data) -> Example:
    return Example(WideConstants(), (data.tensor("x", 3, 4), torch.tensor([2, 0, 5, 1])))


class Travelling(nn.Module):
    """Permutations that are undone after operators with dimensions, and ones that are not."""

    row: torch.Tensor

    def __init__(self, data: Data) -> None:
        super().__init__()
        self.register_buffer("row", data.tensor("row", 3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        there, other = x.permute(0, 2, 3, 1), y.permute(0, 2, 3, 1)
        joined = torch.cat([torch.relu(there), other], dim=3)
        return (
            (torch.relu(there) + self.row).permute(0, 3, 1, 2),
            joined.permute(0, 3, 1, 2),
            torch.abs(there).mean(dim=(1, 3), keepdim=True).permute(0, 3, 1, 2),
            torch.neg(there)[:, :, 1:].permute(0, 3, 1, 2),
            torch.exp(there[:1].squeeze(0)).permute(2, 0, 1),
            torch.relu(there.unsqueeze(0)).permute(0, 1, 4, 2, 3),
            torch.tanh(there).permute(0, 3, 2, 1),
            torch.abs(there).mean(dim=3).permute(0, 2, 1),
        )


@case(guards="inverse permutes cancel, and the dimensions of the operators between them follow")
def permutes_around(data: Data) -> Example:
    return Example(Travelling(data), (data.tensor("x", 2, 3, 2, 4), data.tensor("y", 2, 3, 2, 4)))


class SingletonPieces(nn.Module):
    """Concatenations of tensors with dimensions of one, each permuted afterwards by all that use it."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        joined = torch.cat([torch.relu(x), torch.abs(y)], dim=1)
        return joined.permute(0, 2, 1, 3) + 1.0, torch.exp(joined.permute(0, 2, 1, 3))


@case(guards="a permutation after a concatenation of single slices goes before it, without effect")
def singleton_pieces(data: Data) -> Example:
    return Example(SingletonPieces(), (data.tensor("x", 1, 1, 3, 2), data.tensor("y", 1, 1, 3, 2)))


class TallFilters(nn.Module):
    """Strided convolutions and a pool whose windows need not fill the height."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 3, kernel_size=3, stride=2, padding=1)
        self.second = nn.Conv2d(3, 2, kernel_size=2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))  # type: ignore[no-any-return]


@case(
    guards="strided convolutions keep a dynamic height dynamic, whatever its remainder",
    backends=("tosa", "xnnpack-int8"),
)
def dynamic_height(data: Data) -> Example:
    return Example(
        TallFilters(), (data.tensor("x", 1, 2, 11, 8),), dynamic_shapes=({2: Dim("height", min=9, max=16)},)
    )


@case(
    guards="a batch norm of a volume without a convolution before it is lowered, or stays outside",
    backends=("tosa", "xnnpack-fp32"),
)
def volume_norm_alone(data: Data) -> Example:
    return Example(nn.BatchNorm3d(2), (data.tensor("x", 1, 2, 2, 3, 2),))


class NormsBehind(nn.Module):
    """Batch norms after a linear layer without a bias, and after a convolution with weights from the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3, bias=False)
        self.rows = nn.BatchNorm1d(3)
        self.image = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor, image: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.rows(self.linear(x)), self.image(functional.conv2d(image, weight))


@case(
    guards="a batch norm is folded into the layer before it only where the weights of that are constants",
    backends=("xnnpack-fp32",),
)
def norms_behind(data: Data) -> Example:
    shapes = {"x": (2, 4), "image": (1, 2, 3, 3), "weight": (3, 2, 2, 2)}
    return Example(NormsBehind(), tuple(data.tensor(name, *shape) for name, shape in shapes.items()))


class VolumeConvs(nn.Module):
    """Convolutions of volumes: flat, deep and far apart in depth."""

    def __init__(self) -> None:
        super().__init__()
        kernels = (((2, 2, 1), 1), ((1, 1, 2), 1), ((1, 1, 1), (1, 1, 2)))
        self.convs = nn.ModuleList(nn.Conv3d(2, 2, kernel, stride) for kernel, stride in kernels)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(conv(x) for conv in self.convs)


@case(guards="convolutions of volumes are taken for Ethos-U55 where they are flat", also=U55, backends=U55)
def volume_convs(data: Data) -> Example:
    return Example(VolumeConvs(), (data.tensor("x", 1, 2, 3, 3, 3),))
