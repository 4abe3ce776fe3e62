"""Constants that are infinite, of integers, read twice, or passed by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from executorch_goldens import Data, Example, case

#: Linear layers and convolutions are quantized there, and nothing else.
PARTLY = ("tosa-fp+int",)


class InfiniteMask(nn.Module):
    """A softmax under a mask of minus infinities that the model holds."""

    mask: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((width, width), float("-inf")).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + self.mask, dim=-1)


@case(
    guards="infinities of a buffer are replaced in the lowered program, not in the model (#17901)",
    # Minus infinity becomes -255, in the range of which a code is worth one.
    sqnr={"tosa-int": 13},
    backends=("tosa-int",),
)
def infinite_mask(data: Data) -> Example:
    return Example(InfiniteMask(4), (data.tensor("x", 2, 4, 4),), fill=False)


class IntegerPlaces(nn.Module):
    """Rows of a table at places that the model holds as int64."""

    places: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.tensor([2, 0, 3]))
        self.table = nn.Embedding(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(self.places)  # type: ignore[no-any-return]


@case(
    guards="places that a model holds as int64 are cast before they are quantized (#18234)",
    backends=("tosa-int",),
)
def int64_places(data: Data) -> Example:
    return Example(IntegerPlaces(), (data.tensor("x", 3, 5),))


class IntegerSteps(nn.Module):
    """Integers that a model holds as int64, compared with an input."""

    steps: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.arange(4))

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return torch.where(n > self.steps, x, x * 0.5)


@case(
    guards="integers that a model holds as int64 are cast before they are compared (#18234)",
    backends=("tosa-int",),
)
def int64_steps(data: Data) -> Example:
    numbers = torch.tensor([[2], [0]], dtype=torch.int32)
    return Example(IntegerSteps(), (data.tensor("x", 2, 4), numbers))


class AtPlaces(nn.Module):
    """Elements of an input that are chosen by integers that the model holds as int64."""

    places: torch.Tensor

    def __init__(
        self,
        places: list[int] | list[list[int]],
        chosen: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> None:
        super().__init__()
        self.register_buffer("places", torch.tensor(places))
        self.chosen = chosen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.chosen(x, self.places) * 2.0


@case(guards="columns at places that a model holds as int64 are taken (#18234)", backends=("tosa-int",))
def int64_columns(data: Data) -> Example:
    module = AtPlaces([2, 0, 3], lambda x, places: torch.index_select(x, 1, places))
    return Example(module, (data.tensor("x", 2, 4),))


@case(guards="elements at places that a model holds as int64 are taken (#18234)", backends=("tosa-int",))
def int64_elements(data: Data) -> Example:
    module = AtPlaces([[2, 0, 3], [1, 1, 0]], lambda x, places: torch.gather(x, 1, places))
    return Example(module, (data.tensor("x", 2, 4),))


@case(
    guards="factors that a model holds as int64 are cast before they are quantized (#18234)",
    backends=("tosa-int",),
)
def int64_factors(data: Data) -> Example:
    return Example(AtPlaces([2, 0, 3, 1], torch.mul), (data.tensor("x", 2, 4),))


class FarSteps(nn.Module):
    """Integers that are made where they are read, the last of which no int32 holds."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2.0, torch.arange(0, 2**33, 2**32) - x.to(torch.int64)


@case(guards="integers beyond int32 are not made as int32", backends=("tosa-fp", "tosa-int"))
def steps_beyond_int32(data: Data) -> Example:
    return Example(FarSteps(), (data.tensor("x", 3, 2),))


class TwoNames(nn.Module):
    """One tensor under two names, folded with a number under the one, and read under the other."""

    first: torch.Tensor
    second: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("first", table)
        self.register_buffer("second", table)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + torch.abs(self.first)) * self.second + self.first


@case(
    guards="a tensor under two names that is folded under one stays under the other (#19663)",
    backends=("tosa-int",),
)
def tensor_of_two_names(data: Data) -> Example:
    module = TwoNames(data.tensor("table", 2, 4))
    return Example(module.eval(), (data.tensor("x", 2, 4),), fill=False)


class Tied(nn.Module):
    """A table of words that is the weight of the layer that gives their scores as well."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.scores = nn.Linear(width, words, bias=False)
        self.scores.weight = self.table.weight

    def forward(self, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.table(n).sum(1) + self.scores(x)  # type: ignore[no-any-return]


@case(
    guards="a weight that is quantized in one place stays for an embedding that is not (#19663)",
    run_on=("example",),
    backends=PARTLY,
    also=PARTLY,
)
def tied_embedding(data: Data) -> Example:
    return Example(Tied(words=4, width=4), (torch.tensor([[0, 1], [2, 3]]), data.tensor("x", 2, 4)))


class WeightAsOperand(nn.Module):
    """A layer whose weight divides its input elsewhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + torch.fmod(x, 1.0 + self.layer.weight)  # type: ignore[no-any-return]


@case(
    guards="a weight that is quantized in one place stays for arithmetic that is not (#19663)",
    run_on=("example",),
    backends=PARTLY,
    also=PARTLY,
)
def weight_as_operand(data: Data) -> Example:
    return Example(WeightAsOperand(width=4), (data.tensor("x", 4, 4) + 2.0**-7,))


class ByName(nn.Module):
    """One buffer that two partitions read, in operators that have arguments by name."""

    table: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.add(x, self.table, alpha=2)
        return torch.add(y - torch.max(y), self.table, alpha=3)


@case(
    guards="a constant that two partitions read is copied for operators with arguments by name (#17680)",
    backends=("tosa-fp",),
)
def constant_beside_names(data: Data) -> Example:
    return Example(ByName(data.tensor("table", 2, 4)), (data.tensor("x", 2, 4),))


class SplitTwice(nn.Module):
    """The same split written twice, and a piece of each taken."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2.0
        return torch.split(y, 2, dim=1)[0] + torch.split(y, 2, dim=1)[0] * torch.split(y, 2, dim=1)[1]


@case(guards="pieces of two equal splits are one (#21590)", backends=("tosa",))
def split_twice(data: Data) -> Example:
    return Example(SplitTwice(), (data.tensor("x", 2, 4),))
