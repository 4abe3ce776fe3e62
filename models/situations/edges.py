"""Windows, slices and indices at the edges of a tensor and beyond."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class DilatedPool(nn.Module):
    """One max pool with holes in its window."""

    def __init__(self, kernel: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.arguments = (kernel, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(x, *self.arguments)


@case(guards="a dilated max pool pads with the least value (#17094)", backends=("tosa",))
def dilated_pool_padded(data: Data) -> Example:
    # Below zero throughout: a pool that pads with zeros shows.
    return Example(DilatedPool(3, 1, 1, 2), (data.tensor("x", 1, 2, 6, 6) - 2.0,))


@case(guards="a dilated max pool with a stride is taken only where it is right (#17094)", backends=("tosa",))
def dilated_pool_strided(data: Data) -> Example:
    return Example(DilatedPool(2, 2, 0, 2), (data.tensor("x", 1, 2, 7, 8) - 2.0,))


class WholeScatter(nn.Module):
    """Slices written over a whole dimension, from its start, to its end, and from before its start."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.slice_scatter(x, x * 2.0, dim=0, start=0, end=4),
            torch.slice_scatter(x, y, dim=0, start=0, end=2),
            torch.slice_scatter(x, y, dim=0, start=2, end=9),
            torch.slice_scatter(x, z, dim=0, start=-7, end=3),
        )


@case(
    guards="a slice written up to an edge leaves no empty piece, nor wraps around (#18198)",
    backends=("tosa",),
)
def slice_scatter_to_the_edges(data: Data) -> Example:
    return Example(WholeScatter(), (data.tensor("x", 4, 3), data.tensor("y", 2, 3), data.tensor("z", 3, 3)))


class BroadcastIndices(nn.Module):
    """Elements written where a column and a row of indices cross."""

    def forward(
        self, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            torch.index_put(x, (rows[:1], columns), y[0]),
            torch.index_put(x, (rows, columns[:1]), y[0, :2]),
        )


@case(
    guards="indices that broadcast each other are counted after that (#17247)",
    run_on=("example",),
    backends=("tosa",),
)
def index_put_broadcast(data: Data) -> Example:
    rows, columns = torch.tensor([3, 0], dtype=torch.int32), torch.tensor([2, 1, 4], dtype=torch.int32)
    return Example(BroadcastIndices(), (data.tensor("x", 4, 5), data.tensor("y", 2, 3), rows, columns))


class FirstRows(nn.Module):
    """The first rows, as many as an input says: the number is known only at run time."""

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        rows: int = count.item()  # type: ignore[assignment]
        torch._check(rows >= 0)  # type: ignore[no-untyped-call]
        torch._check(rows <= x.shape[0])  # type: ignore[no-untyped-call]
        return x[:rows]


@case(
    guards="a slice whose size is known only at run time is no no-op (#17678)",
    run_on=("example",),
    backends=("xnnpack-fp32", "tosa-fp"),
)
def slice_of_unknown_size(data: Data) -> Example:
    return Example(FirstRows(), (data.tensor("x", 4, 3), torch.tensor(2)))
