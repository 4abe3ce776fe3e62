"""Values of other types inside a model of float32, and several types in one."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case

BFLOAT16 = ("tosa-bf16",)
#: Linear layers and convolutions are quantized there, and what shares their scale.
PARTLY = ("tosa-fp+int",)


class HalfUnits(nn.Module):
    """A GELU and a sigmoid of float16 between casts."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        half = x.half()
        return functional.gelu(half).float(), (half * 2.0).float()


@case(guards="a GELU of float16 stays where the runtime has it (#16680)", backends=("xnnpack-fp32",))
def half_gelu(data: Data) -> Example:
    return Example(HalfUnits(), (data.tensor("x", 2, 4),))


class HalfCat(nn.Module):
    """Six pieces of float16, one more than XNNPACK concatenates at once, and their sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces = [x + 0.25 * index for index in range(6)]
        return torch.cat(pieces, dim=1) * 0.5


@case(
    guards="a quantized concatenation of six pieces of float16 is cut in two (#18569)",
    backends=("xnnpack-int8",),
)
def half_long_cat(data: Data) -> Example:
    return Example(HalfCat(), (data.tensor("x", 2, 3).half(),))


class BfloatInside(nn.Module):
    """A product in bfloat16 between casts from and to float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.bfloat16) * 2.0 + 1.0).float() * 0.5


@case(guards="bfloat16 stays outside of a delegate that lacks it (#16703)", backends=("tosa-fp",))
def bfloat16_inside(data: Data) -> Example:
    return Example(BfloatInside(), (data.tensor("x", 2, 4),))


class TwoFloatTypes(nn.Module):
    """A sum of bfloat16 and float32, which gives float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 + x.float()


@case(
    guards="an operator whose operands are of two float types stays outside (#17304)",
    backends=BFLOAT16,
    also=BFLOAT16,
)
def two_float_types(data: Data) -> Example:
    return Example(TwoFloatTypes(), (data.tensor("x", 2, 4),))


class UnlikeOperands(nn.Module):
    """The greater, the join and the comparison of bfloat16 and float32, to which exir does not give one type."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, z = x * 2.0, x.float() + 0.25
        return torch.maximum(y, z), torch.cat((y, z), dim=1), y > z


@case(
    guards="operators that take two float types as they are stay outside (#17304)",
    backends=BFLOAT16,
    also=BFLOAT16,
)
def unlike_operands(data: Data) -> Example:
    return Example(UnlikeOperands(), (data.tensor("x", 2, 4),))


class Rounded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x * 4.0 + 0.125)


@case(guards="rounding keeps its model's float type (#17097)", backends=BFLOAT16, also=BFLOAT16)
def bfloat16_rounding(data: Data) -> Example:
    return Example(Rounded(), (data.tensor("x", 2, 4, bits=2, limit=4),))


@case(guards="a batch norm alone keeps its model's float type (#17097)", backends=BFLOAT16, also=BFLOAT16)
def bfloat16_batch_norm(data: Data) -> Example:
    return Example(nn.BatchNorm2d(2), (data.tensor("x", 1, 2, 3, 4, bits=2, limit=4),))


class MovedIntegers(nn.Module):
    """Integers joined, cut and transposed, and returned as they are."""

    def forward(self, n: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.cat((n, m), dim=1), n.permute(1, 0) * 1, m[:, 1:]


@case(
    guards="integers are moved by a profile that has no integers in floats, and back (#18540)",
    backends=("tosa-fp", "tosa-int"),
)
def moved_integers(data: Data) -> Example:
    numbers = (data.tensor(name, 2, 3, bits=0, limit=9).to(torch.int32) for name in "nm")
    return Example(MovedIntegers(), tuple(numbers))


class PaddedIntegers(nn.Module):
    """Integers padded, and returned as they are."""

    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return functional.pad(n, (1, 2))


@case(guards="integers are padded, or stay outside of a profile that does not pad them", backends=("tosa",))
def padded_integers(data: Data) -> Example:
    return Example(PaddedIntegers(), (data.tensor("n", 2, 3, bits=0, limit=9).to(torch.int32),))


class IndexedIntegers(nn.Module):
    """Rows of integers, and of booleans, by index."""

    def forward(self, n: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return n[rows], (n > 2)[rows]


@case(
    guards="values of a type that the profile lacks are indexed outside (#18498)",
    run_on=("example",),
    backends=("tosa-fp",),
)
def indexed_integers(data: Data) -> Example:
    numbers = data.tensor("n", 4, 3, bits=0, limit=9).to(torch.int32)
    return Example(IndexedIntegers(), (numbers, torch.tensor([2, 0], dtype=torch.int32)))


class ComparedTruths(nn.Module):
    """Booleans and integers compared for equality and for difference."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left, right = x > 0.0, y > 0.0
        return left == right, left != right, n != 2


@case(
    guards="comparisons of what the float profile cannot compare stay outside (#22558)",
    backends=("tosa-fp",),
)
def compared_truths(data: Data) -> Example:
    numbers = data.tensor("n", 2, 4, bits=0, limit=3).to(torch.int32)
    # Odd 32nds: none is zero.
    operands = (data.tensor(name, 2, 4) + 2.0**-5 for name in "xy")
    return Example(ComparedTruths(), (*operands, numbers))


class MaskLogic(nn.Module):
    """Bitwise and, or, xor and not of booleans."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        left, right = x > 0.0, y > 0.0
        return torch.where(((left & right) | (left ^ ~right)), x, y)


@case(guards="operators on the bits of booleans are logic, and are delegated (#17734)", backends=("tosa",))
def mask_logic(data: Data) -> Example:
    return Example(MaskLogic(), tuple(data.tensor(name, 2, 4) + 2.0**-5 for name in "xy"))


class ComplexProduct(nn.Module):
    """A product of complex numbers, made of and taken apart to real ones."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        product = torch.view_as_complex(x) * torch.view_as_complex(y)
        return torch.view_as_real(product) * 2.0


@case(guards="complex numbers stay outside of a delegate (#22555)", backends=("tosa-fp",))
def complex_product(data: Data) -> Example:
    return Example(ComplexProduct(), (data.tensor("x", 3, 2), data.tensor("y", 3, 2)))


class IntegerTerm(nn.Module):
    """A sum and a product of floats with integers: quantization observes the floats alone."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return (x + n) * 0.5


@case(
    guards="an operator of which one operand alone is quantized keeps its dequantization (#21589)",
    backends=("tosa-int", "tosa-fp+int"),
    also=("tosa-fp+int",),
)
def integer_term(data: Data) -> Example:
    return Example(
        IntegerTerm(), (data.tensor("x", 2, 4), data.tensor("n", 2, 4, bits=0, limit=3).to(torch.int32))
    )


class BoundedLayer(nn.Module):
    """The minimum of a layer's output and of integers: the scale of the layer is that of the minimum as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return torch.minimum(self.layer(x), n)


class ComparedLayer(BoundedLayer):
    """Compares the result of a layer with integers."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return self.layer(x) > n  # type: ignore[no-any-return]


def integers(data: Data) -> torch.Tensor:
    return data.tensor("n", 2, 3, bits=0, limit=1).to(torch.int32)


@case(
    guards="a minimum of which one operand alone is quantized keeps its dequantization (#21589)",
    backends=PARTLY,
    also=PARTLY,
)
def layer_bounded_by_integers(data: Data) -> Example:
    return Example(BoundedLayer(), (data.tensor("x", 2, 4), integers(data)))


@case(
    guards="a comparison of which one operand alone is quantized keeps its dequantization (#21589)",
    backends=PARTLY,
    also=PARTLY,
)
def layer_above_integers(data: Data) -> Example:
    return Example(ComparedLayer(), (data.tensor("x", 2, 4), integers(data)))


class FilledIntegers(nn.Module):
    """Constants that are made with a type of their own."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        steps = torch.full((2, 4), 3, dtype=torch.int32)
        # Before 1.4.1 the quantizer does not take inputs that are integers.
        return (x > 0.0).to(torch.int32) + steps, x + torch.ones((2, 4), dtype=torch.float32)


@case(
    guards="a constant that is made as an integer stays one when quantized (#16931)", backends=("tosa-int",)
)
def filled_integers(data: Data) -> Example:
    # Odd 32nds: none is zero.
    return Example(FilledIntegers(), (data.tensor("x", 2, 4) + 2.0**-5,))


class FilledWithWhole(nn.Module):
    """A constant of floats made from a whole number: it would be int64 without the explicit dtype."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.full((2, 4), 3, dtype=torch.float32)


@case(
    guards="a constant that is made as floats from a whole number stays one when quantized (#16931)",
    backends=("tosa-int",),
)
def filled_with_whole(data: Data) -> Example:
    return Example(FilledWithWhole(), (data.tensor("x", 2, 4),))


class RaisedTwice(nn.Module):
    """A sum of float16 with ones of its shape and type, and two copies of it behind each other."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.ones_like(x) + x
        return torch.cat((y, y), dim=-1), y


@case(guards="the dtype of a constant of float16 with a symbolic size is emitted", backends=("xnnpack-fp32",))
def half_ones_like(data: Data) -> Example:
    shapes = ({0: torch.export.Dim("rows", min=2, max=16)},)
    return Example(RaisedTwice(), (data.tensor("x", 4, 3).half(),), dynamic_shapes=shapes)
