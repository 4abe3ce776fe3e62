"""Models that reach code whose order comes from addresses or from sets of strings; tests prove that they do.

Each guards against one container: a ``set`` of nodes, iterated, follows where the nodes lie in memory, a ``set`` of
names follows the hash seed. Both then decide names or places in what is lowered.
"""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class TableInTheMiddle(nn.Module):
    """Two linear layers: the first writes a mutable table that the second reads.

    The write takes the table as the float that it is: the integer profile leaves it out of the partition that holds
    both layers, and what remains of the partition falls apart.
    """

    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(4, 6))
        self.first = nn.Linear(6, 6)
        self.last = nn.Linear(6, 6)


class RowInTheMiddle(TableInTheMiddle):
    def forward(self, x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        self.table.index_copy_(0, row, self.first(x))
        return self.last(self.table)  # type: ignore[no-any-return]


@case(guards="a partition that lost its middle is split into parts in the order of their nodes")
def split_partition(data: Data) -> Example:
    return Example(RowInTheMiddle(), (data.tensor("x", 1, 6), torch.tensor([2])))


class WholeInTheMiddle(TableInTheMiddle):
    """All of the table is written: 1.4.1 splits the partition and lowers its parts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.table.copy_(self.first(x))
        return self.last(self.table)  # type: ignore[no-any-return]


@case(guards="the parts of a partition that lost its middle are lowered in the order of their nodes")
def split_partition_parts(data: Data) -> Example:
    return Example(WholeInTheMiddle(), (data.tensor("x", 4, 6),))


class IndexArithmetic(nn.Module):
    """The place of the largest value, in sums and products with int64 constants, narrowed at the end."""

    stride: torch.Tensor
    start: torch.Tensor
    other: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("stride", torch.tensor(3))
        self.register_buffer("start", torch.tensor(2))
        self.register_buffer("other", torch.tensor(5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        place = torch.argmax(x, dim=1)
        first = place * self.stride + self.start
        second = place * self.other - self.start
        return first.to(torch.int32), second.to(torch.int32), x * 0.5


@case(
    guards="constants beside an index are narrowed to int32 in the order of their users",
    # Elsewhere a row has its largest value twice, and which of the two is found is nobody's promise.
    run_on=("example", "drawn"),
)
def index_arithmetic(data: Data) -> Example:
    return Example(IndexArithmetic(), (data.tensor("x", 3, 4),))


class PermutedChain(nn.Module):
    """Permutations before and after sums and products with constants: removing them moves the constants."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(2, 5, 3))
        self.scale = nn.Parameter(torch.zeros(2, 5, 3))
        self.offset = nn.Parameter(torch.zeros(2, 5, 3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a = x.permute(0, 2, 1) + self.shift
        b = y.permute(0, 2, 1) * self.scale
        return (a * b - self.offset).permute(0, 2, 1)


@case(guards="permutations around elementwise operators are removed, their constants permuted, in one order")
def permuted_chain(data: Data) -> Example:
    return Example(PermutedChain(), (data.tensor("x", 2, 3, 5), data.tensor("y", 2, 3, 5)))


class ConstantsOnBothSides(nn.Module):
    """Three tables, each used before and after a cut."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3, 4))
        self.scale = nn.Parameter(torch.zeros(3, 4))
        self.offset = nn.Parameter(torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x + self.shift) * self.scale - self.offset
        return (torch.max(y) * self.shift + y) * self.scale - self.offset


@case(guards="several constants that two partitions share are copied in the order of the graph")
def constants_in_two_partitions(data: Data) -> Example:
    return Example(ConstantsOnBothSides(), (data.tensor("x", 3, 4),))


class ShiftedProduct(nn.Module):
    """A linear layer whose bias is an input: XNNPACK's partitioner looks at it as the `addmm` that it decomposes to."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 6))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(nn.functional.linear(x, self.weight, bias))


@case(guards="what XNNPACK gathers around a matrix product comes in one order, whether it takes it or not")
def shifted_product(data: Data) -> Example:
    return Example(ShiftedProduct(), (data.tensor("x", 3, 6), data.tensor("bias", 5)))
