"""Models whose output slots hold equal values: each slot must keep a tensor of its own, in its place.

The buffers are 4-d, because layout transposes at the outputs are what made slots collapse (issue #18866).
"""

from __future__ import annotations

import torch

from executorch_goldens import Data, Example, case

SHAPE = (1, 2, 4, 4)


class TwoBuffers(torch.nn.Module):
    """Holds the two buffers that the models below return."""

    first: torch.Tensor
    second: torch.Tensor

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("first", first)
        self.register_buffer("second", second)


class Doubled(TwoBuffers):
    """The same arithmetic on both buffers."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + self.first, self.first * 2.0, self.second * 2.0


@case(guards="equal buffers in two output slots stay two outputs", issue=18866)
def equal_buffers(data: Data) -> Example:
    values = data.tensor("values", *SHAPE)
    return Example(Doubled(values, values.clone()), (data.tensor("x", *SHAPE),))


class Converging(TwoBuffers):
    """Arithmetic that makes unequal buffers equal where the second is twice the first."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + self.first, self.first + self.first, self.second * 1.0


@case(guards="buffers that only folding makes equal stay two outputs", issue=18866)
def equal_after_folding(data: Data) -> Example:
    values = data.tensor("values", *SHAPE)
    return Example(Converging(values, values * 2.0), (data.tensor("x", *SHAPE),))


class Cloned(TwoBuffers):
    """Clones of the buffers, which lowering may drop."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + 1.0, self.first.clone(), self.second.clone()


@case(guards="clones of equal buffers, first among a delegate's outputs, stay two outputs", issue=18866)
def equal_clones(data: Data) -> Example:
    values = data.tensor("values", *SHAPE)
    return Example(Cloned(values, values.clone()), (data.tensor("x", *SHAPE),))


def ramp() -> torch.Tensor:
    """Return the ramp -0.75 .. 0.75 along the width, of `SHAPE`; every value is dyadic."""
    return torch.linspace(-0.75, 0.75, SHAPE[-1]).reshape(1, 1, 1, -1).expand(*SHAPE)


class Ramps(torch.nn.Module):
    """Two ramps made in the forward: quantization does not fold them before the backend does."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + 1.0, ramp(), ramp()


@case(guards="equal constants made by the model itself stay two outputs, quantized too", issue=18866)
def equal_ramps(data: Data) -> Example:
    return Example(Ramps(), (data.tensor("x", *SHAPE),))


class Twice(torch.nn.Module):
    """One computed value in both slots; deduplicated before any backend sees it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1.0
        return y, y


@case(guards="one value returned twice: the control beside the equal buffers, never wrong")
def same_value_twice(data: Data) -> Example:
    return Example(Twice(), (data.tensor("x", *SHAPE),))


class SumTwice(TwoBuffers):
    """Two sums that become one when equal constants, and then their equal users, are merged."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + self.first, x + self.second


@case(guards="two sums that merging makes one stay two outputs")
def same_sum_twice(data: Data) -> Example:
    values = data.tensor("values", *SHAPE)
    return Example(SumTwice(values, values.clone()), (data.tensor("x", *SHAPE),))


class NoInput(TwoBuffers):
    """Equal constant outputs of a model that takes no input."""

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.first + 1.0, self.second + 1.0


@case(guards="equal constant outputs without any input still lower", constant_outputs=True)
def equal_outputs_without_input(data: Data) -> Example:
    values = data.tensor("values", *SHAPE)
    return Example(NoInput(values, values.clone()), ())


class TwoSums(TwoBuffers):
    """Constant outputs that only two scalars tell apart."""

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.first + 1.0, self.second + 2.0


@case(
    guards="scalars of a model without any input keep their places",
    constant_outputs=True,
    backends=("xnnpack-int8",),
)
def scalars_without_input(data: Data) -> Example:
    values = data.tensor("values", *SHAPE)
    return Example(TwoSums(values, values.clone()), ())


class SumDifferenceProduct(torch.nn.Module):
    """Three outputs of one shape, declared in another order than they are computed."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = x + y
        difference = x - y
        product = total * difference
        return product, total, difference


@case(guards="outputs of one shape keep the declared order (#15826, #17138, #17276, #18486, #21730)")
def output_order(data: Data) -> Example:
    return Example(SumDifferenceProduct(), (data.tensor("x", *SHAPE), data.tensor("y", *SHAPE)))
