"""Operators that an Ethos-U55 rejects: other types, other kernels, longer strides."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case

U55 = ("tosa-u55",)


def signed(data: Data, name: str, *shape: int) -> torch.Tensor:
    """Return odd 32nds, positive and negative: none is zero."""
    return data.tensor(name, *shape) + 2.0**-5


class LeastInteger(nn.Module):
    """The least of each row of int32, which Ethos-U55 has for narrower integers only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Made here: before 1.4.1 the quantizer does not take inputs that are integers.
        return torch.amin((x > 0.0).to(torch.int32), 1, keepdim=True)


@case(guards="the least of int32 stays outside for Ethos-U55 (#17904)", also=U55, backends=U55)
def least_integer(data: Data) -> Example:
    return Example(LeastInteger(), (signed(data, "x", 3, 4),))


class MovedTruths(nn.Module):
    """Booleans concatenated and permuted."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat((x > 0.0, y > 0.0), dim=1).permute(1, 0)


@case(guards="booleans stay outside for Ethos-U55 (#18095)", also=U55, backends=U55)
def moved_truths(data: Data) -> Example:
    return Example(MovedTruths(), (signed(data, "x", 2, 3), signed(data, "y", 2, 3)))


class LeastAsFloat(nn.Module):
    """The minimum of each row of int32, as a float: outputs are quantized whatever their type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.amin((x > 0.0).to(torch.int32), 1, keepdim=True).to(torch.float32)


@case(guards="the least of int32 inside a model stays outside for Ethos-U55 (#17904)", also=U55, backends=U55)
def least_integer_inside(data: Data) -> Example:
    return Example(LeastAsFloat(), (signed(data, "x", 3, 4),))


class CutTruths(nn.Module):
    """Some columns of booleans, as floats."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > 0.0)[:, 1:3].to(torch.float32)


@case(guards="booleans inside a model stay outside for Ethos-U55 (#18095)", also=U55, backends=U55)
def cut_truths(data: Data) -> Example:
    return Example(CutTruths(), (signed(data, "x", 2, 4),))


class NarrowProductInside(nn.Module):
    """A product of matrices of int16, as floats."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        product = torch.bmm((x > 0.0).to(torch.int16), (y > 0.0).to(torch.int16))
        return product.to(torch.float32)


@case(
    guards="products of int16 matrices inside a model stay outside for Ethos-U55 (#18365)",
    also=U55,
    backends=U55,
)
def narrow_product_inside(data: Data) -> Example:
    return Example(NarrowProductInside(), (signed(data, "x", 1, 3, 3), signed(data, "y", 1, 3, 3)))


class NarrowProduct(nn.Module):
    """A product of matrices of int16."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.bmm((x > 0.0).to(torch.int16), (y > 0.0).to(torch.int16))


@case(guards="products of int16 matrices stay outside for Ethos-U55 (#18365)", also=U55, backends=U55)
def narrow_product(data: Data) -> Example:
    return Example(NarrowProduct(), (signed(data, "x", 1, 3, 3), signed(data, "y", 1, 3, 3)))


@case(
    guards="a transposed convolution with an oblong kernel is taken for Ethos-U55 (#18414)",
    also=U55,
    backends=U55,
)
def oblong_transposed_conv(data: Data) -> Example:
    return Example(nn.ConvTranspose2d(2, 3, (2, 3), stride=2), (data.tensor("x", 1, 2, 3, 4),))


class LongStrides(nn.Module):
    """A max pool whose windows lie apart by more than Ethos-U55's stride, and do not overlap."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.max_pool2d(x, (4, 5))


@case(guards="a max pool with a long stride is taken for Ethos-U55 (#21284)", also=U55, backends=U55)
def long_strides(data: Data) -> Example:
    return Example(LongStrides(), (data.tensor("x", 1, 2, 8, 10),))


class OtherStrides(nn.Module):
    """Max pools whose windows overlap, and have gaps between them."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return nn.functional.max_pool2d(x, 4, stride=2), nn.functional.max_pool2d(x, 4, stride=5)


@case(guards="a max pool is cut for Ethos-U55 only where its windows touch", also=U55, backends=U55)
def other_strides(data: Data) -> Example:
    return Example(OtherStrides(), (data.tensor("x", 1, 2, 8, 12),))


class Averages(nn.Module):
    """Average pools: of neighbours, far apart, of a high window in the padding, of one that is higher than 256."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            nn.functional.avg_pool2d(x, 2),
            nn.functional.avg_pool2d(x, 2, stride=4),
            nn.functional.avg_pool2d(x, (9, 2), stride=2, padding=(2, 1), count_include_pad=False),
            nn.functional.avg_pool2d(x, (257, 1), stride=1),
        )


@case(guards="average pools that Ethos-U55 does not have stay outside", also=U55, backends=U55)
def averages(data: Data) -> Example:
    return Example(Averages(), (data.tensor("x", 1, 1, 258, 4),))


@case(guards="an average pool of a batch stays outside for Ethos-U55", also=U55, backends=U55)
def averages_of_a_batch(data: Data) -> Example:
    return Example(nn.AvgPool2d(2), (data.tensor("x", 2, 1, 4, 6),))


class FloorQuotients(nn.Module):
    """The floor of a third of all columns but the first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.floor_divide(x[..., 1:], 3)


@case(guards="a floor quotient by a number is taken apart for Ethos-U55", also=U55, backends=U55)
def floor_quotients(data: Data) -> Example:
    return Example(FloorQuotients(), (signed(data, "x", 2, 3, 4, 5),))


@case(guards="a convolution in three dimensions stays outside for Ethos-U55", also=U55, backends=U55)
def conv3d_for_u55(data: Data) -> Example:
    return Example(nn.Conv3d(2, 3, 3, padding=1), (data.tensor("x", 1, 2, 4, 5, 6),))


@case(guards="a transposed convolution of 65536 channels is taken for Ethos-U55", also=U55, backends=U55)
def most_transposed_channels(data: Data) -> Example:
    conv = nn.ConvTranspose2d(65536, 1, 1, bias=False)
    weight = torch.zeros(65536, 1, 1, 1)
    # Few that are not zero: the sum of all would have no room.
    weight[:: 2**12] = data.tensor("weight", 16, 1, 1, 1) / 4.0
    conv.weight = nn.Parameter(weight)
    return Example(conv, (data.tensor("x", 1, 65536, 1, 1),), fill=False)
