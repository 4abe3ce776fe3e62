"""Models that consist of no-ops: once removed, a delegate would be empty."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class Only(nn.Module):
    """One function of the input and nothing else, between operators that no delegate takes where asked."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@case(guards="a view alone is no delegate (#16005)", backends=("tosa-int",))
def view_alone(data: Data) -> Example:
    return Example(Only(lambda x: x.reshape(3, 4)), (data.tensor("x", 2, 6),))


@case(guards="a detached input alone is no delegate (#18232)", backends=("tosa-fp",))
def detach_alone(data: Data) -> Example:
    return Example(Only(lambda x: torch.ops.aten.detach_copy.default(x)), (data.tensor("x", 2, 6),))


@case(guards="a squeeze of dimensions that are not one, alone, is no delegate (#19662)", backends=("tosa",))
def squeeze_alone(data: Data) -> Example:
    return Example(Only(lambda x: torch.squeeze(x, (0, 1))), (data.tensor("x", 2, 6),))


@case(
    guards="an identity permute, with dimensions counted from the end, is no delegate (#22436)",
    backends=("tosa",),
)
def identity_permute_from_the_end(data: Data) -> Example:
    return Example(Only(lambda x: x.permute(0, -2, -1)), (data.tensor("x", 2, 3, 2),))


class Detached(nn.Module):
    """Values detached and aliased on their way."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.ops.aten.detach_copy.default(x + 1.0) * 2.0
        return torch.ops.aten.alias_copy.default(y) - 0.5  # type: ignore[no-any-return]


@case(guards="values that are detached or aliased on their way are themselves (#17280)", backends=("tosa",))
def detached_on_the_way(data: Data) -> Example:
    return Example(Detached(), (data.tensor("x", 2, 6),))
