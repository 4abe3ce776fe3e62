"""Programs of several calls in shapes and places that models of one call do not have: constants that only TOSA's
operators compute, sizes that a batch leaves open, results that two operators share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from executorch_goldens import Data, Example, case
from models.situations.limits import Function

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class WithConstants(nn.Module):
    """An input beside what is computed of a constant alone."""

    table: torch.Tensor
    places: torch.Tensor

    def __init__(
        self, table: torch.Tensor, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> None:
        super().__init__()
        self.register_buffer("table", table)
        self.register_buffer("places", torch.tensor([1, 0]))
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.function(self.table, self.places)


#: By name: what is guarded, the targets, and a function of a constant of shape (1, 2, 4, 6) and of places.
CONSTANTS: Mapping[str, tuple[str, tuple[str, ...], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "averaged": (
        "an average pool of a constant is computed before the program runs",
        ("tosa-fp", "tosa-int"),
        lambda table, places: functional.avg_pool2d(table, 2),
    ),
    "pooled": (
        "a max pool of a constant is computed before the program runs",
        ("tosa-fp", "tosa-int"),
        lambda table, places: functional.max_pool2d(table, 2),
    ),
    "gathered": (
        "rows of a constant at constant places are computed before the program runs",
        ("tosa-fp", "tosa-int"),
        lambda table, places: table[:, places] * 2.0,
    ),
    "resized": (
        "a constant that is resized is computed before the program runs",
        ("tosa-fp", "tosa-int"),
        lambda table, places: functional.interpolate(table, scale_factor=2.0, mode="nearest"),
    ),
}


def add_constant(
    name: str,
    guards: str,
    targets: tuple[str, ...],
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    @case(name=f"constant-{name}", guards=guards, backends=targets)
    def build(data: Data) -> Example:
        module = WithConstants(data.tensor("table", 1, 2, 4, 6), function)
        return Example(module, (data.tensor("x", 1, 2, 1, 1),), fill=False)


for _name, _how in CONSTANTS.items():
    add_constant(_name, *_how)


# --- Pools of symbolic sizes


def add_pool(
    name: str, guards: str, module: nn.Module, shape: tuple[int, ...], targets: tuple[str, ...]
) -> None:
    @case(
        name=name,
        guards=guards,
        backends=targets,
        also=tuple(each for each in targets if "+" in each),
        releases=("1.4.1", "1.5.1"),
    )
    def build(data: Data) -> Example:
        rows = 2 * Dim("rows", min=2, max=6)
        return Example(module, (data.tensor("x", *shape),), dynamic_shapes=({2: rows},))


SHAPES = ("tosa-fp+shape", "tosa-int+shape")
add_pool(
    "max-pool-of-pairs",
    "a max pool of symbolic pairs is an adaptive one",
    nn.MaxPool2d(2),
    (1, 3, 8, 6),
    SHAPES,
)
add_pool(
    "max-pool-of-pairs-outside",
    "a max pool of a symbolic height stays outside of a delegate without shapes",
    nn.Sequential(nn.Sigmoid(), nn.MaxPool2d(2), nn.Sigmoid()),
    (1, 3, 8, 6),
    ("tosa-fp",),
)
add_pool(
    "average-of-pairs-outside",
    "an average pool of a symbolic height stays outside of a delegate without shapes",
    nn.Sequential(nn.Sigmoid(), nn.AvgPool2d(2, padding=1), nn.Sigmoid()),
    (1, 3, 8, 6),
    ("tosa-fp",),
)


# --- Results that two operators share


def shared(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = x + y
    return z.reshape(6, 4).abs(), z.permute(0, 2, 1) * 2.0, z[:, 1:], torch.cat([z, z * 0.5], 1)


@case(
    guards="what moves the elements of a sum moves its codes, for each that reads it",
    backends=("tosa-int", "tosa-int16"),
    also=("tosa-int16",),
)
def sum_moved_twice(data: Data) -> Example:
    return Example(Function(shared), (data.tensor("x", 2, 3, 4), data.tensor("y", 2, 3, 4)))


class SharedActivations(nn.Module):
    """Sums, products and layers whose results a ReLU and something else read."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.conv = nn.Linear(4, 4), nn.Conv2d(2, 2, 1)
        self.up = nn.ConvTranspose2d(2, 4, 2, groups=2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b, c = x + x * 0.5, x * x, self.layer(x)
        image = x.reshape(1, 2, 2, 4)
        d = self.conv(image)
        return (
            *(torch.relu(each) + each for each in (a, b, c, d)),
            torch.relu(self.up(image)),
            torch.relu((x > 0.0).to(torch.int32) + 1),
        )


@case(
    guards="a ReLU is no part of what another operator reads as well",
    backends=("xnnpack-int8",),
)
def activations_of_shared_results(data: Data) -> Example:
    return Example(SharedActivations(), (data.tensor("x", 4, 4),))


# --- Recurrent layers, means, products


class Recurrent(nn.Module):
    """Two recurrent layers, both ways, and their states."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU], **how: bool) -> None:
        super().__init__()
        self.layers = kind(3, 2, num_layers=2, bidirectional=True, **how)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, state = self.layers(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


@case(guards="states of an LSTM of two layers, both ways, are given", backends=("tosa-int",))
def lstm_both_ways(data: Data) -> Example:
    return Example(Recurrent(nn.LSTM), (data.tensor("x", 2, 1, 3),))


@case(guards="states of a GRU of two layers, both ways, are given", backends=("tosa-int",))
def gru_both_ways(data: Data) -> Example:
    return Example(Recurrent(nn.GRU, batch_first=True, bias=False), (data.tensor("x", 1, 2, 3),))


@case(guards="means over dimensions of a higher rank than an image's", backends=("tosa-fp", "tosa-int"))
def means_of_rank_six(data: Data) -> Example:
    def means(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.mean((3, 4)),
            x.mean((2, 5), keepdim=True),
            x[0].mean((2, 3)),
            x[0].mean((0, 4), keepdim=True),
        )

    return Example(Function(means), (data.tensor("x", 2, 2, 2, 3, 2, 2),))


class Products(nn.Module):
    """Products with a parameter that is turned there."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        w = self.weight.t()
        y = torch.mm(x, w)
        return torch.addmm(self.bias, x, w), y + self.bias, torch.mm(x * 2.0, w)


@case(guards="a product with a turned parameter is a linear layer", backends=("xnnpack-fp32", "tosa-fp"))
def products_with_turned_weight(data: Data) -> Example:
    return Example(Products(), (data.tensor("x", 2, 4),))


@case(
    guards="gathers along each dimension, by places of one shape and of another",
    backends=("tosa-fp", "tosa-int"),
    run_on=("example",),
)
def gathers_along_each(data: Data) -> Example:
    def gathered(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2.0
        return (
            torch.gather(y, 1, n),
            torch.gather(y, 2, n),
            torch.gather(y, 0, n[:1]),
            torch.gather(y, -1, n[:, :, :1]),
        )

    places = torch.tensor([[[0, 1, 1], [1, 0, 0]], [[1, 1, 0], [0, 0, 1]]])
    return Example(Function(gathered), (data.tensor("x", 2, 2, 3), places))


U55 = ("tosa-u55",)


@case(guards="reflections, reversals, windows and resizes within an Ethos-U55", backends=U55, also=U55)
def u55_rearranged(data: Data) -> Example:
    def rearranged(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 0.5
        return (
            functional.pad(y, (1, 1, 1, 1), mode="reflect"),
            functional.pad(y[0], (2, 1), mode="reflect"),
            torch.flip(y, (2, 3)),
            torch.flip(y, (1,)),
            y.unfold(2, 2, 2),
            y.unfold(1, 2, 1),
            functional.interpolate(y, scale_factor=2.0, mode="nearest"),
            functional.interpolate(y, scale_factor=3.0, mode="nearest"),
            functional.interpolate(y, size=(8, 12), mode="nearest"),
            functional.interpolate(y, scale_factor=2.0, mode="bilinear"),
        )

    return Example(Function(rearranged), (data.tensor("x", 1, 3, 4, 6),))


# --- One operand away from others


@case(
    guards="operands behind a permutation, and behind a squeeze or of another rank, meet (#21620)",
    backends=("tosa", "xnnpack"),
)
def turned_and_squeezed(data: Data) -> Example:
    def met(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x.t() + y.squeeze(2)).t(), (z.t() + torch.full((1, 1, 1), 0.5)).permute(0, 2, 1)

    inputs = data.tensor("x", 4, 8), data.tensor("y", 8, 4, 1), data.tensor("z", 8, 1)
    return Example(Function(met), inputs)


@case(
    guards="numbers are written in the type that is asked for, not in their own (#16931)",
    backends=("tosa-int",),
)
def filled_in_other_type(data: Data) -> Example:
    def filled(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x + torch.full((2, 4), 3, dtype=torch.float32),
            x * torch.full_like(x, 2, dtype=torch.float32),
            x - torch.full((4,), 3.25, dtype=torch.int32),
        )

    return Example(Function(filled), (data.tensor("x", 2, 4),))


@case(
    guards="casts to types that a delegate has not end outside of it, in the middle and last (#16703)",
    backends=("tosa-fp",),
)
def casts_to_types_outside(data: Data) -> Example:
    def cast(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2.0
        inside = (y.to(torch.bfloat16) * 2.0 + 1.0).to(torch.float32)
        return inside + x, (y + 0.5).to(torch.float64)

    return Example(Function(cast), (data.tensor("x", 2, 4),))
