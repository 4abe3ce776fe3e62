"""Conditions with the possible contents of a branch: numbers, and another condition."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example
from models.situations.recorded import case

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
