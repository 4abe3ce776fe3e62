"""Reading and writing parts of a tensor: lookups, slices, scatters, masks."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class TokenEmbedding(nn.Module):
    """Token embeddings plus a slice of a table of positions."""

    def __init__(self, tokens: int, length: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Parameter(torch.zeros(length, width))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.tokens(ids) + self.positions[: ids.shape[1]]  # type: ignore[no-any-return]


@case(guards="embedding rows are gathered by int64 tokens; positions are a slice of their table")
def embedding(data: Data) -> Example:
    ids = torch.from_numpy(data.generator("ids").integers(0, 10, size=(2, 4)))
    return Example(TokenEmbedding(tokens=10, length=6, width=5), (ids,))


class Gathers(nn.Module):
    """Elements gathered along a dimension, selected rows and columns, and indices that are tensors."""

    def forward(self, x: torch.Tensor, columns: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.gather(x, 1, columns),
            torch.gather(x, 0, columns),
            torch.index_select(x, 1, rows),
            x[rows],
            x[rows, columns[:3, 0]],
            x[:, rows],
        )


@case(
    guards="gather, index_select and indices that are int32 tensors read along their own dimension",
    backends=("tosa",),
)
def gather(data: Data) -> Example:
    columns = torch.from_numpy(data.generator("columns").integers(0, 4, size=(4, 3), dtype="int32"))
    rows = torch.tensor([3, 0, 0], dtype=torch.int32)
    return Example(Gathers(), (data.tensor("x", 4, 5), columns, rows))


class Slices(nn.Module):
    """Slices of every kind, and splits."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, _, third = torch.split(x, [2, 1, 3], dim=1)
        return (
            x[:, 1:5:2],
            x[:, :, -3:],
            x[:, 1:5][:, 1:3],
            x[:, 3],
            torch.narrow(x, 2, 1, 2),
            first + third[:, :2],
            # Seven tensors, one of them twice: XNNPACK takes five at a time.
            torch.cat((*torch.unbind(x, dim=1), x[:, 0]), dim=-1),
            torch.cat(torch.chunk(x, 2, dim=2)[::-1], dim=2),
        )


@case(
    guards="slices keep start, end and stride, of a slice too; splits, and lists put together, keep their order"
)
def slices(data: Data) -> Example:
    return Example(Slices(), (data.tensor("x", 2, 6, 4),))


class SliceWrites(nn.Module):
    """A slice, one row, and every other column overwritten."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.slice_scatter(x, y, dim=0, start=1, end=3),
            torch.select_scatter(x, y[0], dim=0, index=2),
            torch.slice_scatter(x, y.reshape(4, 3), dim=1, start=0, end=6, step=2),
        )


@case(guards="slice_scatter and select_scatter write where they should, with a stride too")
def slice_scatter(data: Data) -> Example:
    return Example(SliceWrites(), (data.tensor("x", 4, 6), data.tensor("y", 2, 6)))


class IndexWrites(nn.Module):
    """Rows and elements written by index, or added in place."""

    def forward(
        self, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return (
            torch.index_put(x, (rows,), y),
            torch.index_put(x, (rows, columns), y[:, 0]),
            torch.index_put(x, (columns,), y, accumulate=True),
            torch.index_copy(x, 0, rows.long(), y),
        )


@case(
    guards="index_put and index_copy write, or add, where their int32 indices say",
    run_on=("example",),
    backends=("tosa",),
)
def index_put(data: Data) -> Example:
    rows, columns = torch.tensor([3, 0], dtype=torch.int32), torch.tensor([2, 1], dtype=torch.int32)
    return Example(IndexWrites(), (data.tensor("x", 4, 5), data.tensor("y", 2, 5), rows, columns))


class RepeatedAddition(nn.Module):
    """Rows added to a tensor by index."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (rows,), y, accumulate=True)


@case(
    guards="rows added twice to one place add up: a scatter alone would keep one of them",
    run_on=("example",),
    backends=("tosa",),
)
def index_put_repeated(data: Data) -> Example:
    rows = torch.tensor([2, 2], dtype=torch.int32)
    return Example(RepeatedAddition(), (data.tensor("x", 4, 5), data.tensor("y", 2, 5), rows))


class WholeDimensionWrites(nn.Module):
    """Columns written after a whole dimension, and a number under a mask."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        written, masked = x + x, x * 0.5
        written[:, columns] = y
        masked[x > 0.28125] = 0.5
        return written, masked


@case(
    guards="index_put after a whole dimension and under a mask becomes a permutation and a where",
    run_on=("example",),
    backends=("tosa",),
)
def index_put_columns(data: Data) -> Example:
    columns = torch.tensor([4, 1], dtype=torch.int32)
    # Eighths: none is nearer to the mask's limit than a thirty-second.
    x = data.tensor("x", 4, 5, bits=3, limit=8)
    return Example(WholeDimensionWrites(), (x, data.tensor("y", 4, 2), columns))


class WrittenClone(nn.Module):
    """A clone of the input that an operator outside the delegate writes, beside a sum inside."""

    def forward(
        self, x: torch.Tensor, rows: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        written = x.clone()
        written[:, rows] = y
        return written, x + x


@case(
    guards="a delegate does not return an input as if it had computed it: a clone stays a copy (#22436)",
    run_on=("example",),
)
def written_clone(data: Data) -> Example:
    rows = torch.tensor([2, 0])
    return Example(WrittenClone(), (data.tensor("x", 2, 3), rows, data.tensor("y", 2, 2)))


class Masks(nn.Module):
    """Elements chosen by comparison, by an input, and by their place."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, keep: torch.Tensor) -> tuple[torch.Tensor, ...]:
        later = torch.ones(x.shape, dtype=torch.bool).triu(diagonal=1)
        return (
            torch.where(x > y, x, y),
            torch.where(keep, x, 0.25),
            torch.where(keep, -0.5, y),
            x.masked_fill(keep, -2.0),
            torch.tril(x),
            torch.triu(y, diagonal=1),
            torch.softmax(x.masked_fill(later, float("-inf")), dim=-1),
        )


@case(
    guards="where, masked_fill and triangles choose the right side of their mask",
    # Minus infinity becomes -255, in the range of which a code is worth one.
    sqnr={"tosa-int": 5},
    backends=("tosa", "xnnpack-int8"),
)
def masks(data: Data) -> Example:
    keep = data.tensor("keep", 4, 5) > 0
    return Example(Masks(), (data.tensor("x", 4, 5), data.tensor("y", 4, 5) + 2.0**-5, keep))


class Nonzero(nn.Module):
    """Places of a matrix, one in each row: n rows with the strides (1, n)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(x > 0.5)


@case(
    guards="the rows of nonzero come out in the layout that the program has for them",
    backends=("xnnpack-fp32",),
    run_on=("example",),
)
def nonzero_by_rows(data: Data) -> Example:
    return Example(Nonzero(), (torch.eye(3),))
