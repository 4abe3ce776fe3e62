"""Conditions with the possible contents of a branch: numbers, and another condition."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case

CONTROL_FLOW = ("tosa-fp+cf",)


class NumbersInBranches(nn.Module):
    """Two branches that differ in the numbers that they add and multiply by."""

    def forward(self, switch: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        def more(x: torch.Tensor) -> torch.Tensor:
            return x * 2.0 + 0.5

        def less(x: torch.Tensor) -> torch.Tensor:
            return x - 0.25

        return torch.cond(switch > 0.5, more, less, (x,))  # type: ignore[no-any-return]


@case(
    guards="numbers in branches are constants of the branch (#17369)",
    backends=CONTROL_FLOW,
    also=CONTROL_FLOW,
)
def condition_with_numbers(data: Data) -> Example:
    return Example(NumbersInBranches(), (torch.full((1,), 0.75), data.tensor("x", 2, 4)))


class NestedCondition(nn.Module):
    """A condition in a branch of another."""

    def forward(self, switch: torch.Tensor, inner: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        def negated(x: torch.Tensor, inner: torch.Tensor) -> torch.Tensor:
            return -x

        def chosen(x: torch.Tensor, inner: torch.Tensor) -> torch.Tensor:
            return torch.cond(  # type: ignore[no-any-return]
                inner > 0.5, lambda x: x + x, lambda x: torch.abs(x), (x,)
            )

        return torch.cond(switch > 0.5, chosen, negated, (x, inner))  # type: ignore[no-any-return]


@case(
    guards="a condition within a condition is taken with it (#18010)",
    backends=CONTROL_FLOW,
    also=CONTROL_FLOW,
)
def nested_condition(data: Data) -> Example:
    switches = torch.full((1,), 0.75), torch.full((1,), 0.25)
    return Example(NestedCondition(), (*switches, data.tensor("x", 2, 4)))


class LayersInBranches(nn.Module):
    """Two branches of a linear layer and an activation each, which a partitioner keeps from being decomposed."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def hard(x: torch.Tensor) -> torch.Tensor:
            return functional.hardswish(self.first(x))

        def soft(x: torch.Tensor) -> torch.Tensor:
            return functional.silu(self.second(x))

        return torch.cond(x.sum() > 0.0, hard, soft, (x,))  # type: ignore[no-any-return]


@case(
    guards="layers in branches are kept for the delegate as they are outside of them",
    backends=CONTROL_FLOW,
    also=CONTROL_FLOW,
    # Before, the payload is invalid.
    releases=("1.4.1", "1.5.1"),
)
def condition_with_layers(data: Data) -> Example:
    return Example(LayersInBranches(), (data.tensor("x", 3, 4),))
