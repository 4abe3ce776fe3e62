"""Models whose lowering makes several delegates: the order and the names of partitions are at stake."""

from __future__ import annotations

import torch

from models.registry import Data, Example, case


class TwoDelegates(torch.nn.Module):
    """The model of report #19045: the full reduction in the middle is not taken by TOSA."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        s = torch.max(z)
        return s * z


@case(guards="two partitions keep one order whatever the hash seed", report=19045)
def two_delegates(data: Data) -> Example:
    return Example(TwoDelegates(), (data.tensor("x", 10, 4, 5), data.tensor("y", 10, 4, 5)))
