"""Operators that resize, reorder, reduce or compare, and integer arithmetic."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


def distinct(data: Data, name: str, *shape: int) -> torch.Tensor:
    """Return the quarters from zero up in random order: no two values are within an int8 code of each other."""
    count = torch.Size(shape).numel()
    return torch.from_numpy(data.generator(name).permutation(count)).float().reshape(shape) / 4.0


def integers(data: Data, name: str, *shape: int, limit: int = 16) -> torch.Tensor:
    """Return int32 values uniform over -limit..limit."""
    return data.tensor(name, *shape, bits=0, limit=limit).to(torch.int32)


class Resizes(nn.Module):
    """Nearest-neighbour resizing by equal and unequal factors; bilinear with corners aligned and not."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.interpolate(x, scale_factor=2.0, mode="nearest"),
            functional.interpolate(x, size=(9, 8), mode="nearest"),
            functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False),
            functional.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
        )


@case(guards="upsampling repeats rows and columns, or weighs them from corners or centres, as asked")
def upsample(data: Data) -> Example:
    return Example(Resizes(), (data.tensor("x", 1, 2, 3, 4),))


class Downscale(nn.Module):
    """A sixteenth in both dimensions, the limit of TOSA's RESIZE."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, scale_factor=1 / 16, mode="bilinear")


@case(
    guards="a bilinear resize to a sixteenth, at RESIZE's limit, takes the mean of the middle four of each square"
)
def downscale(data: Data) -> Example:
    return Example(Downscale(), (data.tensor("x", 1, 2, 32, 16),))


class Shuffles(nn.Module):
    """Channels to pixels and back, and a permutation of six dimensions."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        blocks = x.reshape(1, 2, 4, 2, 2, 3).permute(0, 3, 5, 2, 4, 1)
        return functional.pixel_shuffle(x, 2), functional.pixel_unshuffle(x[:, :3, :, :2], 2), blocks


@case(guards="pixel shuffles and permutations of more than four dimensions keep every element in its place")
def pixel_shuffle(data: Data) -> Example:
    return Example(Shuffles(), (data.tensor("x", 1, 8, 4, 3),))


class Products(nn.Module):
    """Matrix products of two and three dimensions, with sums and factors, and sums over named indices."""

    def forward(
        self, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return (
            torch.mm(a, b),
            torch.addmm(b, a, b, beta=0.5, alpha=2.0),
            torch.bmm(x, y),
            torch.baddbmm(x, x, y, alpha=0.5),
            torch.einsum("bij,bjk->kb", x, y),
            torch.einsum("bij,j->ib", x, a[0]),
        )


@case(
    guards="mm, addmm, bmm, baddbmm and einsum: factors, order of operands and order of indices hold",
    also=("tosa-int16",),
    backends=("tosa", "xnnpack-int8"),
)
def matrix_products(data: Data) -> Example:
    square = (data.tensor(name, 4, 4) for name in "ab")
    batches = (data.tensor(name, 2, 4, 4) for name in "xy")
    return Example(Products(), (*square, *batches))


class MatrixTimesColumn(nn.Module):
    """A batch of matrices times one column of another matrix."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, y[:, 0])


@case(
    guards="a product with a vector that stays outside the delegate gets its operands dequantized",
    backends=("tosa", "xnnpack-int8"),
)
def matrix_column(data: Data) -> Example:
    return Example(MatrixTimesColumn(), (data.tensor("x", 2, 4, 4), data.tensor("y", 4, 4)))


class Pads(nn.Module):
    """Zeros and a number at unequal edges; borders that repeat, mirror or wrap the image."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.pad(x, (1, 2, 0, 3)),
            functional.pad(x, (0, 1), value=-0.75),
            functional.pad(x, (1, 2, 1, 0), mode="replicate"),
            functional.pad(x, (2, 1, 1, 1), mode="reflect"),
            functional.pad(x, (1, 2, 0, 1), mode="circular"),
        )


@case(
    guards="pads stand at the right edges; a quantized zero is the zero point; borders are gathered in order"
)
def pads(data: Data) -> Example:
    return Example(Pads(), (data.tensor("x", 1, 2, 3, 4) + 0.5,))


class CroppingPad(nn.Module):
    """One edge padded, another cut off: the amounts are of both signs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.pad(x, (-1, 2, 1, -1))


@case(
    guards="a pad by a negative amount cuts off, or fails in the same place every time",
    backends=("tosa-int",),
)
def cropping_pad(data: Data) -> Example:
    return Example(CroppingPad(), (data.tensor("x", 1, 2, 3, 4),))


class Moves(nn.Module):
    """Elements rolled, flipped, repeated, stacked, read in another shape, and cut into overlapping windows."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.roll(x, shifts=(1, -2), dims=(0, 1)),
            torch.flip(x, dims=(0, 2)),
            x.repeat(2, 2, 1, 3),
            x.repeat_interleave(2, dim=1),
            torch.stack((x, -x), dim=1),
            x[:, :1].expand(2, 3, 4) + x,
            torch.as_strided(x, (4, 6), (6, 1)),
            x.unfold(2, 2, 1),
        )


@case(guards="roll, flip, repeat, interleave, stack, expand and unfold put every element in its place")
def moves(data: Data) -> Example:
    return Example(Moves(), (data.tensor("x", 2, 3, 4),))


class Reductions(nn.Module):
    """Sums, means, extrema and products over dimensions, kept or dropped, and running sums."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.sum(dim=(0, 2)),
            x.mean(dim=1),
            x.mean(dim=(2, 3), keepdim=True),
            x.sum(),
            x.amax(dim=(1, 2)),
            x.amin(dim=-1, keepdim=True),
            torch.cumsum(x, dim=1),
            torch.prod(x[0], dim=1),
        )


@case(guards="sums, means, extrema, products and running sums go along their dimensions, kept or dropped")
def reductions(data: Data) -> Example:
    return Example(Reductions(), (data.tensor("x", 2, 3, 2, 4) + 0.25,))


class IntegerArgmax(nn.Module):
    """Indices of the largest values, as int32, the type in TOSA."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=-1).to(torch.int32)


@case(
    guards="argmax counts from zero along its dimension and stays in the delegate",
    run_on=("example",),
    backends=("tosa",),
)
def argmax(data: Data) -> Example:
    return Example(IntegerArgmax(), (distinct(data, "x", 3, 5),))


class Comparisons(nn.Module):
    """The six comparisons, and logic over their results."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        less, more = x < y, x >= 0.28125
        return (
            x == y,
            x != y,
            x <= y,
            x > -0.28125,
            torch.logical_and(less, more),
            torch.logical_or(less, more),
            torch.logical_xor(less, more),
            torch.logical_not(less),
            torch.any(less, dim=1),
            torch.all(more, dim=0, keepdim=True),
            torch.any(more),
        )


@case(
    guards="comparisons keep their direction and their equality; logic, any and all work on booleans",
    backends=("tosa",),
)
def comparisons(data: Data) -> Example:
    # Few values, far apart: some are equal.
    x, y = (data.tensor(name, 4, 5, bits=1, limit=2) for name in "xy")
    return Example(Comparisons(), (x, y))


class IntegerArithmetic(nn.Module):
    """Arithmetic, comparisons, quotients and remainders of int32."""

    def forward(self, n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            n + m,
            n - 3,
            n * m,
            torch.where(n > m, n, m),
            n.sum(dim=1),
            n == m,
            torch.div(n, m, rounding_mode="floor"),
            torch.div(n, m, rounding_mode="trunc"),
            torch.remainder(n, m),
        )


@case(
    guards="int32 arithmetic stays int32, in quantized models too; quotients round as asked below zero",
    run_on=("example", "extremes", "drawn"),
    backends=("tosa",),
)
def integer_arithmetic(data: Data) -> Example:
    divisors = integers(data, "m", 4, 5, limit=3).abs() + 1
    return Example(IntegerArithmetic(), (integers(data, "n", 4, 5, limit=6), divisors))


class NarrowComparisons(nn.Module):
    """Comparisons of int8 with int8 and of int16 with int16."""

    def forward(
        self, n: torch.Tensor, m: torch.Tensor, p: torch.Tensor, q: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return n > m, n == m, p <= q, p != q


@case(
    guards="narrow integers are compared by value, where the profile compares only floats too",
    backends=("tosa",),
)
def narrow_comparisons(data: Data) -> Example:
    dtypes = {"n": torch.int8, "m": torch.int8, "p": torch.int16, "q": torch.int16}
    narrow = (data.tensor(name, 3, 5, bits=0, limit=3).to(dtype) for name, dtype in dtypes.items())
    return Example(NarrowComparisons(), tuple(narrow))


class BitPatterns(nn.Module):
    """Bitwise logic and shifts of int32, and bitwise logic of booleans."""

    def forward(self, n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        less = n < m
        return (
            n & m,
            n | m,
            n ^ 5,
            torch.bitwise_not(n),
            n << 2,
            n >> 1,
            less & (m > 0),
            ~less,
        )


@case(
    guards="bitwise logic and shifts of int32 keep the sign; on booleans they become logic",
    backends=("tosa",),
)
def bit_patterns(data: Data) -> Example:
    return Example(BitPatterns(), (integers(data, "n", 3, 4), integers(data, "m", 3, 4)))


class Casts(nn.Module):
    """From float to integer and back, from booleans, and sums of two dtypes."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            (4.0 * x + 0.125).to(torch.int32),
            n.to(torch.float32) + x,
            n + x,
            (x > 0.03125).to(torch.float32) - x,
            (n > 0) * n,
        )


@case(guards="casts truncate towards zero; a sum of two dtypes takes the wider one", also=("tosa-fp+int",))
def casts(data: Data) -> Example:
    return Example(Casts(), (data.tensor("x", 3, 4), integers(data, "n", 3, 4)))


class ScalarArithmetic(nn.Module):
    """Numbers, tensors of no dimension and tensors of other ranks as operands; writes in place."""

    level: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("level", torch.tensor(0.75))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = x + 0.0
        z += y
        z *= 0.5
        return (
            torch.add(x, y, alpha=2),
            torch.sub(x, y, alpha=0.5),
            1.5 - x,
            x * self.level,
            z,
            torch.minimum(torch.maximum(x, -self.level), self.level),
            torch.full_like(x, 0.5) + x,
            torch.clamp(x, min=y, max=y + 1.0),
            x.squeeze(0).t() - y[:, None],
        )


@case(guards="numbers and tensors of lower rank broadcast; alpha multiplies the right operand")
def scalar_arithmetic(data: Data) -> Example:
    return Example(ScalarArithmetic(), (data.tensor("x", 1, 3, 4), data.tensor("y", 4)))


class Joined(nn.Module):
    """Three tensors, and four, one below the other."""

    def forward(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat((a, b, c)), torch.cat((a, b, c, d))


@case(guards="three and four tensors are joined along their first dimension", backends=("xnnpack-fp32",))
def joined_rows(data: Data) -> Example:
    return Example(Joined(), tuple(data.tensor(name, 1, 4) for name in "abcd"))
