"""Operators that TOSA computes in float8: products, pools, casts, and moves of elements.

Nothing here names a dtype: the targets cast the model.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case

FLOAT8 = ("tosa-fp8e4m3", "tosa-fp8e5m2")
#: Of `backends`: what the names of both targets start with.
ONLY = ("tosa-fp8",)


class Float8Convolutions(nn.Module):
    """A strided, a depthwise and a transposed convolution of one image, each with a bias."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.strided = nn.Conv2d(channels, 4, kernel_size=3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(channels, channels, kernel_size=3, groups=channels)
        self.transposed = nn.ConvTranspose2d(channels, 3, kernel_size=2, stride=2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.strided(x), self.depthwise(x), self.transposed(x)


@case(
    guards="convolutions of float8 accumulate in float16, their biases with them, and are cast back",
    backends=ONLY,
    also=FLOAT8,
)
def float8_convolutions(data: Data) -> Example:
    return Example(Float8Convolutions(channels=2), (data.tensor("x", 1, 2, 6, 8),))


class MatrixChain(nn.Module):
    """A product of two matrices, and one of it with a third."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        product = torch.bmm(a, b)
        return product, torch.bmm(product, c)


@case(
    guards="a product of float8 is cast back before the next product reads it",
    backends=ONLY,
    also=FLOAT8,
)
def float8_products(data: Data) -> Example:
    shapes = {"a": (2, 3, 4), "b": (2, 4, 5), "c": (2, 5, 2)}
    return Example(MatrixChain(), tuple(data.tensor(name, *shape) for name, shape in shapes.items()))


class Float8Pools(nn.Module):
    """The largest of windows that overlap, and the mean of windows with a border."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.max_pool2d(x, 3, stride=2, padding=1), functional.avg_pool2d(x, 2, stride=2)


@case(guards="pools of float8 keep to their windows; means accumulate in float16", backends=ONLY, also=FLOAT8)
def float8_pools(data: Data) -> Example:
    return Example(Float8Pools(), (data.tensor("x", 1, 2, 6, 8),))


class Float8Moves(nn.Module):
    """Everything that leaves elements as they are."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.cat((x, y), dim=2),
            functional.pad(x, (1, 2, 0, 1), value=-0.75),
            x.permute(0, 2, 1).reshape(4, 6),
            x[:, 1:, :2],
            torch.flip(x, (0, 1)),
            y.repeat(1, 2, 1),
        )


@case(guards="what moves elements of float8 moves each to its place", backends=ONLY, also=FLOAT8)
def float8_moves(data: Data) -> Example:
    return Example(Float8Moves(), (data.tensor("x", 2, 3, 4), data.tensor("y", 2, 3, 1)))


class Float8Lookup(nn.Module):
    """Rows of an input and of a table, by index."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(rows, width))

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.index_select(x, 0, rows), torch.index_select(self.table, 0, rows)


@case(guards="rows of float8 are gathered by index", backends=ONLY, also=FLOAT8)
def float8_lookup(data: Data) -> Example:
    rows = torch.tensor([3, 1, 1], dtype=torch.int32)
    return Example(Float8Lookup(rows=5, width=4), (data.tensor("x", 4, 6), rows))


class Float8Put(nn.Module):
    """Rows of an input replaced by others."""

    def forward(self, x: torch.Tensor, rows: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (rows,), y)


@case(guards="rows of float8 are scattered by index", backends=ONLY, also=FLOAT8)
def float8_put(data: Data) -> Example:
    rows = torch.tensor([2, 0], dtype=torch.int32)
    return Example(Float8Put(), (data.tensor("x", 3, 4), rows, data.tensor("y", 2, 4)))


class Float8Casts(nn.Module):
    """Units that are computed in float32 between two casts."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = x.to(torch.float32)
        return (torch.sigmoid(wide) * 2.0).to(x.dtype), wide + 0.0625


@case(guards="casts to float8 round to the nearest, ties to even, as torch's do", backends=ONLY, also=FLOAT8)
def float8_casts(data: Data) -> Example:
    return Example(Float8Casts(), (data.tensor("x", 4, 12),))


class Float8Sum(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


@case(
    guards="TOSA adds no float8: a sum stays outside the delegate, or stops lowering",
    backends=ONLY,
    also=FLOAT8,
)
def float8_sum(data: Data) -> Example:
    return Example(Float8Sum(), (data.tensor("x", 3, 4), data.tensor("y", 3, 4)))
