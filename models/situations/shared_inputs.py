"""Layers that share their input, with something between them that no delegate takes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from executorch_goldens import Data, Example, case

DYNAMIC = ("xnnpack-dynamic",)


class Around(nn.Module):
    """Two layers of one input, and a third of its value outside of any delegate."""

    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.first, self.between, self.last = layer(), layer(), layer()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.between(torch.atan(self.first(x))), self.last(x)


@case(
    guards="linear layers that quantize one input together are no partition with one between them (#18397)",
    run_on=("example",),
    backends=DYNAMIC,
    also=DYNAMIC,
)
def linear_around_linear(data: Data) -> Example:
    return Example(Around(lambda: nn.Linear(4, 4)), (data.tensor("x", 2, 4),))


@case(
    guards="convolutions that quantize one input together are no partition with one between them (#18397)",
    run_on=("example",),
    backends=DYNAMIC,
    also=DYNAMIC,
)
def conv_around_conv(data: Data) -> Example:
    return Example(Around(lambda: nn.Conv2d(2, 2, 1)), (data.tensor("x", 1, 2, 3, 3),))
