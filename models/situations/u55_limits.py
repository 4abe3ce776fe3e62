"""What an Ethos-U55 does not take: other types, other kernels, longer strides."""

from __future__ import annotations

import torch
from torch import nn

from harness import Data, Example, case

U55 = ("tosa-u55",)


class LeastInteger(nn.Module):
    """The least of each row of int32, which Ethos-U55 has for narrower integers only."""

    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return torch.amin(n, 1, keepdim=True)


@case(guards="the least of int32 stays outside for Ethos-U55 (#17904)", also=U55, backends=U55)
def least_integer(data: Data) -> Example:
    return Example(LeastInteger(), (data.tensor("n", 3, 4, bits=0, limit=20).to(torch.int32),))


class MovedTruths(nn.Module):
    """Truth values joined and turned."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.cat((left, right), dim=1).permute(1, 0)


@case(guards="truth values stay outside for Ethos-U55 (#18095)", also=U55, backends=U55)
def moved_truths(data: Data) -> Example:
    return Example(MovedTruths(), tuple(data.tensor(name, 2, 3) > 0 for name in "lr"))


class NarrowProduct(nn.Module):
    """A product of matrices of int16."""

    def forward(self, n: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return torch.bmm(n, m)


@case(guards="products of int16 matrices stay outside for Ethos-U55 (#18365)", also=U55, backends=U55)
def narrow_product(data: Data) -> Example:
    factors = (data.tensor(name, 1, 3, 3, bits=0, limit=9).to(torch.int16) for name in "nm")
    return Example(NarrowProduct(), tuple(factors))


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
