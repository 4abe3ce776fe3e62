"""Tensors that do not lie in memory as their shape says, and permutations that only look like one."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Remainder(nn.Module):
    """A remainder by a constant that keeps the layout it was given: no delegate takes it."""

    divisors: torch.Tensor

    def __init__(self, divisors: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("divisors", divisors)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fmod(x, self.divisors)


def divisors(data: Data, *shape: int) -> torch.Tensor:
    """Return one to four eighths; no quotient with 32nds that are odd is near a whole number."""
    eighths = data.generator("divisors").integers(1, 4, size=shape, endpoint=True)
    return torch.from_numpy(eighths).float() / 8.0


@case(
    guards="a channels-last constant outside of any delegate is emitted as it lies (#16636)",
    backends=("xnnpack-fp32",),
    run_on=("example", "drawn"),
)
def channels_last_constant(data: Data) -> Example:
    x = (data.tensor("x", 1, 2, 3, 4) + 2.0**-5).to(memory_format=torch.channels_last)
    module = Remainder(divisors(data, 1, 2, 3, 4).to(memory_format=torch.channels_last))
    return Example(module, (x,), fill=False)


@case(
    guards="a constant that is neither contiguous nor channels-last gets a new layout (#16681)",
    backends=("xnnpack-fp32",),
    run_on=("example", "drawn"),
)
def turned_constant(data: Data) -> Example:
    module = Remainder(divisors(data, 4, 3, 2).permute(2, 1, 0))
    return Example(module, (data.tensor("x", 2, 3, 4) + 2.0**-5,), fill=False)


class TurnedTable(nn.Module):
    """A constant whose dimensions lie in memory in reverse, as the first operand: results are laid out as it is."""

    table: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table.permute(*reversed(range(table.dim()))))

    def divided(self, x: torch.Tensor) -> torch.Tensor:
        """Return the remainder of it by `x`, which no delegate takes."""
        return torch.fmod(self.table, x)


class Divided(TurnedTable):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.divided(x)


@case(
    guards="the result of a constant in reversed dim order gets a dim order the runtime supports (#16681)",
    backends=("xnnpack-fp32",),
    run_on=("example", "drawn"),
)
def turned_dividend(data: Data) -> Example:
    # Odd 32nds: none is zero.
    return Example(Divided(data.tensor("table", 4, 3, 2)), (data.tensor("x", 2, 3, 4) + 2.0**-5,), fill=False)


class Summed(TurnedTable):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table + x


@case(
    guards="an image in reversed dim order is a delegate's constant with a dim order the runtime supports (#16681)",
    backends=("xnnpack-fp32",),
)
def turned_image(data: Data) -> Example:
    return Example(Summed(data.tensor("table", 4, 3, 2, 1)), (data.tensor("x", 1, 2, 3, 4),), fill=False)


class ReadAround(TurnedTable):
    """It is read by two delegates, and by operators between them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table * 2.0 + self.divided(self.table + x)


@case(
    guards="a constant that lies in reverse is the same to delegates and to what is between them (#16681)",
    backends=("xnnpack-fp32",),
    run_on=("example",),
)
def turned_constant_read_around(data: Data) -> Example:
    return Example(
        ReadAround(data.tensor("table", 4, 3, 2)), (data.tensor("x", 2, 3, 4) + 2.0**-5,), fill=False
    )


class Cloned(nn.Module):
    """A clone of an image that keeps its layout, beside one that is made contiguous."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.fmod(x.clone(), 0.375), torch.fmod(x.clone(memory_format=torch.contiguous_format), 0.625)


@case(
    guards="a clone of a channels-last tensor is channels-last (#17611)",
    backends=("xnnpack-fp32",),
    run_on=("example", "drawn"),
)
def channels_last_clone(data: Data) -> Example:
    x = (data.tensor("x", 1, 2, 3, 4) + 2.0**-5).to(memory_format=torch.channels_last)
    return Example(Cloned(), (x,))


class PermutedOnes(nn.Module):
    """Permutations of five and six dimensions, some of size one."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1.0
        return y.permute(0, 4, 3, 1, 2), y.unsqueeze(2).permute(3, 2, 5, 0, 1, 4)


@case(
    guards="a permutation of many dimensions of which some are one keeps its elements (#18136)",
    backends=("tosa",),
)
def permuted_ones(data: Data) -> Example:
    return Example(PermutedOnes(), (data.tensor("x", 1, 2, 1, 3, 4),))


class PaddedBetween(nn.Module):
    """A pad between a permutation and its inverse."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.pad(x.permute(0, 2, 3, 1) * 2.0, (0, 0, 1, 2))
        return y.permute(0, 3, 1, 2) + 1.0


@case(guards="a pad between permutations pads its own dimension (#21738)", backends=("tosa",))
def pad_between_permutes(data: Data) -> Example:
    return Example(PaddedBetween(), (data.tensor("x", 1, 2, 3, 4),))


class PaddedConv(nn.Module):
    """A convolution of a padded convolution: the pad is between two changes of layout."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 3, 1)
        self.second = nn.Conv2d(3, 2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(functional.pad(self.first(x), (0, 1, 2, 0)))  # type: ignore[no-any-return]


@case(guards="a pad between convolutions pads height and width (#21738)", backends=("tosa",))
def pad_between_convs(data: Data) -> Example:
    return Example(PaddedConv(), (data.tensor("x", 1, 2, 3, 4),))


class SqueezedBetween(nn.Module):
    """Permutations above and below squeezes, joined by a sum of two ranks."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        image = x.permute(0, 2, 3, 1)
        row = y.permute(0, 2, 1).unsqueeze(1)
        return (image + row).squeeze(1).permute(0, 2, 1)


@case(guards="a permutation does not move past a squeeze of another rank (#21620)", backends=("tosa",))
def squeeze_between_permutes(data: Data) -> Example:
    return Example(SqueezedBetween(), (data.tensor("x", 1, 3, 1, 4), data.tensor("y", 1, 3, 4)))


class DynamicFactors(nn.Module):
    """One input that a factor for each channel scales and that a convolution takes as well."""

    factors: torch.Tensor

    def __init__(self, factors: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("factors", factors)
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.factors
        return self.conv(y) + y  # type: ignore[no-any-return]


@case(
    guards="operands beside a dynamically quantized convolution are brought to one layout (#20376)",
    backends=("xnnpack-dynamic",),
    also=("xnnpack-dynamic",),
)
def dynamic_conv_beside_factors(data: Data) -> Example:
    factors = 1.0 + data.tensor("factors", 1, 3, 1, 1, limit=8)
    return Example(DynamicFactors(factors), (data.tensor("x", 1, 3, 4, 5),))


class BoundedSoftmax(nn.Module):
    """A softmax along the width, within bounds that it never leaves, and its input as it is."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.softmax(x, -1).clamp(-1.0, 1.0), x


@case(guards="two equal rescales of one value stay two (#21415)", backends=("tosa-int",))
def softmax_beside_its_input(data: Data) -> Example:
    x = data.tensor("x", 3, 4, 6, 5).to(memory_format=torch.channels_last)
    return Example(BoundedSoftmax(), (x,))
