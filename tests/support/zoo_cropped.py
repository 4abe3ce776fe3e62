"""A zoo that does not lower to TOSA, at a node that follows the order of its delegates."""

from __future__ import annotations

import torch
from torch.nn import functional

from executorch_goldens import Data, Example, case


def crop(x: torch.Tensor) -> torch.Tensor:
    return functional.pad(x, (-1, 2, 1, -1))


class Cropped(torch.nn.Module):
    """Three delegates; the last takes values of both others, and neither of its pads is lowered."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x + x
        second = x * torch.max(first)
        peak = torch.max(second)
        return crop(second + peak) + functional.pad(first, (-1, 2, 1, -1))


@case(guards="a failure at another node when delegates come in another order", issue=19045)
def cropped(data: Data) -> Example:
    return Example(Cropped(), (data.tensor("x", 1, 2, 4, 6),))
