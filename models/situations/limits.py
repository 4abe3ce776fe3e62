"""The case just beside a limit that a check or a pass has: another side, another type, one more user, one more element.

Wrong edits of these checks, drawn by rule or made by hand, changed no other program here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from executorch_goldens import Data, Example, case
from models.situations.symbolic_sizes import Of
from models.situations.u55_limits import U55, signed

FLOAT, QUANTIZED = ("xnnpack-fp32",), ("xnnpack-int8",)


class Function(nn.Module):
    """A function of the inputs, without weights."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def of(data: Data, function: Callable[..., Any], *shapes: tuple[int, ...]) -> Example:
    """Return a function and its inputs, of which no value is zero."""
    inputs = (signed(data, name, *shape) for name, shape in zip("xyz"[: len(shapes)], shapes, strict=True))
    return Example(Function(function), tuple(inputs))


def rounded(x: torch.Tensor, *codes: Any) -> torch.Tensor:
    """Return what is left of `x` in codes: scale, zero point, least and largest code, and their type."""
    quantized = torch.ops.quantized_decomposed.quantize_per_tensor.default(x, *codes)
    return torch.ops.quantized_decomposed.dequantize_per_tensor.default(quantized, *codes)  # type: ignore[no-any-return]


def integers(data: Data, name: str) -> torch.Tensor:
    return data.tensor(name, 2, 4, bits=0, limit=9).to(torch.int32)


@case(guards="an average pool whose width alone leaves a remainder is padded as it says", backends=("tosa",))
def average_pool_of_uneven_width(data: Data) -> Example:
    return of(data, lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (1, 2, 5, 4))


@case(guards="an average pool that rounds its size up keeps its last windows", backends=("tosa",))
def average_pool_rounded_up(data: Data) -> Example:
    return of(data, lambda x: functional.avg_pool2d(x, 2, 2, 0, True, False), (1, 2, 5, 7))


@case(guards="a max pool that rounds its size up keeps its last windows", backends=("xnnpack",))
def max_pool_rounded_up(data: Data) -> Example:
    return of(data, lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True), (1, 2, 6, 6))


@case(guards="an average pool with a divisor of its own divides by that", backends=FLOAT)
def average_pool_by_divisor(data: Data) -> Example:
    return of(data, lambda x: functional.avg_pool2d(x * 2.0, 2, 2, 0, False, False, 3), (1, 2, 4, 6))


@case(guards="a transposed convolution with a kernel of 4096 is taken for Ethos-U55", also=U55, backends=U55)
def largest_transposed_kernel(data: Data) -> Example:
    conv = nn.ConvTranspose2d(1, 1, 64, bias=False)
    conv.weight = nn.Parameter(data.tensor("weight", 1, 1, 64, 64) / 4.0)
    return Example(conv, (data.tensor("x", 1, 1, 2, 2),), fill=False)


@case(guards="a convolution with a stride above three is taken for Ethos-U55", also=U55, backends=U55)
def conv_of_long_stride(data: Data) -> Example:
    return Example(nn.Conv2d(2, 3, 2, stride=4), (data.tensor("x", 1, 2, 6, 10),))


@case(guards="a dilated pool with a stride and one output is taken for Ethos-U55", also=U55, backends=U55)
def dilated_pool_of_one(data: Data) -> Example:
    return of(data, lambda x: functional.max_pool2d(x, 2, 2, dilation=2), (1, 2, 4, 4))


@case(guards="a bilinear resize of quantized values is scaled back", backends=("tosa-int",))
def bilinear_doubled(data: Data) -> Example:
    return of(data, lambda x: functional.interpolate(x, scale_factor=2.0, mode="bilinear"), (1, 2, 3, 4))


@case(guards="a dimension of one may have any stride", backends=("tosa",))
def strided_by_nothing(data: Data) -> Example:
    return of(data, lambda x: torch.as_strided(x, (1, 3), (0, 1)) * 2.0, (1, 3))


@case(guards="a strided view that begins later does not begin at the start", backends=("tosa",))
def strided_from_later(data: Data) -> Example:
    return of(data, lambda x: torch.as_strided(x, (2, 2), (2, 1), 2) * 2.0, (2, 4))


@case(guards="a place that becomes a float is no int32", backends=("tosa-fp",), run_on=("example",))
def place_as_float(data: Data) -> Example:
    # Far apart.
    x = torch.tensor([[0.25, -1.0, 0.75, 0.5, 0.0], [1.0, 0.25, -0.5, 0.0, 0.75]])
    return Example(Function(lambda x: torch.argmax(x * 2.0, 1).to(torch.float32)), (x,))


@case(guards="a sum beside a view that splits its dimension sums what it says", backends=("tosa",))
def sum_beside_split(data: Data) -> Example:
    def split(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.permute(1, 0) * 2.0
        return y.sum(0, keepdim=True).reshape(1, 2, 2), y.reshape(2, 3, 4).sum(1, keepdim=True)

    return of(data, split, (4, 6))


@case(guards="a view that two read keeps its shape", backends=("tosa",))
def view_of_two_users(data: Data) -> Example:
    def read(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = (x * 2.0).reshape(3, 8)
        return torch.abs(rows).reshape(4, 6), rows + y

    return of(data, read, (2, 12), (3, 8))


@case(guards="what is subtracted by a factor is not added", backends=("xnnpack",))
def added_with_factors(data: Data) -> Example:
    def added(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.add(x, y, alpha=-1), torch.add(x, y, alpha=3), x + y

    return of(data, added, (2, 4), (2, 4))


@case(guards="quotients of integers are whole numbers", backends=("tosa-fp", "xnnpack-fp32"))
def quotients_of_integers(data: Data) -> Example:
    def divided(x: torch.Tensor, n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 2.0, *(torch.div(n, m, rounding_mode=mode) for mode in ("trunc", "floor"))

    return Example(
        Function(divided), (data.tensor("x", 2, 4), 7 * integers(data, "n"), 2 * integers(data, "m") + 1)
    )


@case(guards="a list of tensors outside of delegates is emitted as one", backends=FLOAT)
def integers_joined_outside(data: Data) -> Example:
    def joined(x: torch.Tensor, n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 2.0, torch.cat((n, m, n), 1)

    return Example(Function(joined), (data.tensor("x", 2, 4), integers(data, "n"), integers(data, "m")))


@case(guards="a view between operators outside of delegates takes no memory of its own", backends=FLOAT)
def view_outside(data: Data) -> Example:
    def flipped(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2.0, torch.bitwise_xor(torch.bitwise_xor(n, 3).reshape(4, 2), 5)

    return Example(Function(flipped), (data.tensor("x", 2, 4), integers(data, "n")))


@case(guards="a relu of a maximum is no product's", backends=QUANTIZED)
def rectified_maximum(data: Data) -> Example:
    return of(data, lambda x, y: torch.relu(torch.maximum(x, y)), (2, 4), (2, 4))


@case(guards="a max pool that rounds an unknown size up stays outside", backends=FLOAT)
def max_pool_of_unknown_size(data: Data) -> Example:
    pool = Of(lambda x: functional.max_pool2d(x * 2.0, 2, 2, ceil_mode=True))
    height = 2 * Dim("half", min=2, max=6)
    return Example(pool, (data.tensor("x", 1, 2, 8, 4),), dynamic_shapes=({2: height},))


@case(
    guards="an average pool of int16 is lowered where the profile has int16",
    also=("tosa-int16",),
    backends=("tosa-int16",),
)
def average_pool_of_int16(data: Data) -> Example:
    return of(data, lambda x: functional.avg_pool2d(x, 2), (1, 2, 4, 6))


@case(guards="an operator outside of delegates that gives two tensors gets memory for each", backends=FLOAT)
def greatest_outside(data: Data) -> Example:
    # The places are left alone: of values that are nearly equal, rounding decides which comes first.
    return of(data, lambda x: torch.topk(x + x, 2).values, (2, 4))


@case(guards="rows of integers are selected in the integer profile", backends=("tosa-int",))
def selected_integers(data: Data) -> Example:
    rows = torch.tensor([1, 0, 1], dtype=torch.int32)
    return Example(Function(lambda n, rows: torch.index_select(n, 0, rows)), (integers(data, "n"), rows))


def squared_place(x: torch.Tensor) -> torch.Tensor:
    """Return the square of a thousand times the place of the largest of each row, half of it."""
    thousands = x.argmax(1) * 1000
    return (thousands * thousands).to(torch.float32) * 0.5


@case(guards="a product of places that int32 may not hold is not made as int32", backends=("tosa-int",))
def square_of_places(data: Data) -> Example:
    return of(data, squared_place, (2, 100))


@case(guards="a sum with a number that no histogram counts is not quantized", backends=QUANTIZED)
def large_number_added(data: Data) -> Example:
    return of(data, lambda x: (x * 1e20 + 1e20, x * 2.0), (2, 4))


def rectified_for_two(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ReLU of a sum of two inputs in int8, rounded to int8 and as it is."""
    codes = 0.125, 0, -128, 127, torch.int8
    z = torch.relu(rounded(x, *codes) + rounded(y, *codes))
    return rounded(z, *codes), z


@case(guards="a ReLU that is read in float32 as well is not part of a sum in int8", backends=FLOAT)
def rectified_sum_of_two_readers(data: Data) -> Example:
    # Registers the operators of quantization.
    import torch.ao.quantization.fx._decomposed  # noqa: F401

    return of(data, rectified_for_two, (2, 3), (2, 3))


class Weighted(nn.Module):
    """A convolution whose weight another convolution makes, each before a relu."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 2)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.relu(functional.conv2d(x, functional.relu(self.conv(y))))


@case(
    guards="a convolution and its relu are not quantized as one with a weight that is already",
    backends=QUANTIZED,
)
def conv_of_rectified_weight(data: Data) -> Example:
    return Example(Weighted(), (data.tensor("x", 1, 2, 6, 6), data.tensor("y", 3, 2, 4, 4)))


class Rounded(nn.Module):
    """Values rounded to codes in uint8, and back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rounded(x * 2.0, 0.125, 128, 0, 255, torch.uint8) + 1.0


@case(guards="codes in uint8 stay outside of XNNPACK, which has none", backends=FLOAT)
def rounded_to_uint8(data: Data) -> Example:
    # Registers the operators of quantization.
    import torch.ao.quantization.fx._decomposed  # noqa: F401

    return Example(Rounded(), (data.tensor("x", 2, 3),))


class Constant(nn.Module):
    """Products that no input is in."""

    def forward(self) -> torch.Tensor:
        return torch.arange(6.0).reshape(2, 3) * 2.0


@case(guards="a program without any input is lowered", backends=FLOAT, constant_outputs=True)
def without_input(data: Data) -> Example:
    return Example(Constant(), ())
