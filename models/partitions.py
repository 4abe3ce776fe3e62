"""Models whose lowering makes several delegates: the order and the names of partitions are at stake.

What splits them is a maximum over the whole tensor (``aten.max.default``), which neither the TOSA nor the
XNNPACK partitioner of any release takes, while ExecuTorch's portable kernels run it.
"""

from __future__ import annotations

import torch

from executorch_goldens import Data, Example, case


class TwoDelegates(torch.nn.Module):
    """The model of issue #19045: the full reduction in the middle is not taken by TOSA."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        s = torch.max(z)
        return s * z


@case(guards="two partitions keep one order whatever the hash seed", issue=19045)
def two_delegates(data: Data) -> Example:
    return Example(TwoDelegates(), (data.tensor("x", 10, 4, 5), data.tensor("y", 10, 4, 5)))


class CentredLinears(torch.nn.Module):
    """Linear layers, each but the last followed by a ReLU and a shift that centres its range on zero."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
            x = x - 0.5 * torch.max(x)
        return self.layers[-1](x)  # type: ignore[no-any-return]


@case(
    guards="five partitions with weights of their own keep one order whatever the hash seed",
    issue=19045,
)
def five_delegates(data: Data) -> Example:
    return Example(CentredLinears(width=6, layers=5), (data.tensor("x", 4, 6),))


class HalvedPeaks(torch.nn.Module):
    """A chain of shifts, each by half of the tensor's peak: one partition more than there are cuts."""

    def __init__(self, cuts: int) -> None:
        super().__init__()
        self.cuts = cuts

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + x
        for _ in range(self.cuts):
            x = x - 0.5 * torch.max(x)
        return x


@case(
    guards="twelve partitions keep the order of discovery: a lexical one puts tag10 before tag2", issue=19045
)
def twelve_delegates(data: Data) -> Example:
    return Example(HalvedPeaks(cuts=11), (data.tensor("x", 2, 3),))


class ConstantOnBothSides(torch.nn.Module):
    """One buffer used before and after the cut."""

    table: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.table
        return torch.max(y) * self.table + y


@case(guards="a constant that two partitions use is copied once for each, under stable names")
def constant_in_two_partitions(data: Data) -> Example:
    return Example(ConstantOnBothSides(data.tensor("table", 4, 6)), (data.tensor("x", 4, 6),))


class ConstantInTwoCats(torch.nn.Module):
    """One buffer in the lists of two concatenations, one on each side of the cut."""

    table: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat((x, self.table), dim=1)
        return torch.cat((y - torch.max(y), self.table), dim=1)


@case(guards="a constant that two partitions use inside a cat's list is copied for each (#22798)")
def constant_in_two_cats(data: Data) -> Example:
    return Example(ConstantInTwoCats(data.tensor("table", 2, 3)), (data.tensor("x", 2, 5),))
