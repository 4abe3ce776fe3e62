"""States that are written at the end of a chain of operators, beside the model's outputs."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class Recorded(nn.Module):
    """Sums of rows; the rows themselves go to a record of the last three, which is not read here."""

    record: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("record", torch.zeros(3, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2.0
        total = y.sum(1)
        self.record.copy_(torch.cat((self.record[1:], y), 0))
        return total


@case(
    guards="a buffer mutation precedes the user outputs of a delegate (#17750)",
    backends=("tosa",),
)
def record_behind_output(data: Data) -> Example:
    return Example(Recorded(width=4), (data.tensor("x", 1, 4),), fill=False)


class Accumulated(nn.Module):
    """A running sum that fades; the output is computed before it."""

    total: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1, width))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2.0
        z = y + 1.0
        self.total.copy_(self.total[:, :] * 0.5 + y)
        return z, self.total.sum(1)


@case(
    guards="the mutation of a running sum precedes the user outputs of a delegate (#17750)",
    backends=("tosa-fp", "xnnpack-fp32"),
)
def running_sum_behind_output(data: Data) -> Example:
    return Example(Accumulated(width=4), (data.tensor("x", 1, 4),), fill=False)
