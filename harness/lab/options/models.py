"""The models of the matrix: small ones, each with a last layer ``head`` that options can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from executorch_goldens import Data

WIDTH = 8
#: Of a symbolic size.
LARGEST = 6


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).relu())  # type: ignore[no-any-return]


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, WIDTH, 3, padding=1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU()
        )
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean((2, 3)))  # type: ignore[no-any-return]


class Elementwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2 * WIDTH, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat((x + y, x * y), -1))  # type: ignore[no-any-return]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = self.body(x)
        # The mask of a causal one is of infinities.
        return self.head(nn.functional.scaled_dot_product_attention(x, values, values, is_causal=True))  # type: ignore[no-any-return]


class Activations(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(2 * WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        return self.head(torch.cat((nn.functional.gelu(x), nn.functional.leaky_relu(x)), -1))  # type: ignore[no-any-return]


class State(nn.Module):
    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("state", torch.zeros(2, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)
        return self.head(self.state + x)  # type: ignore[no-any-return]


class Condition(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor, either: torch.Tensor) -> torch.Tensor:
        found = torch.cond(either, lambda x: self.body(x).relu(), lambda x: x * 2 + x, (x,))
        return self.head(found)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Model:
    """A model, and the shapes of its float inputs; `further` makes others."""

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...] = ((2, WIDTH),)
    further: Callable[[], tuple[torch.Tensor, ...]] = tuple

    def inputs(self, data: Data, symbolic: bool = False) -> tuple[torch.Tensor, ...]:
        """Return inputs; of the largest size where that is symbolic, for which a plan by hint has room."""
        shapes = [(LARGEST, *shape[1:]) if symbolic else shape for shape in self.shapes]
        floats = (data.tensor(f"input {at}", *shape) for at, shape in enumerate(shapes))
        return (*floats, *self.further())


MODELS: Mapping[str, Model] = {
    "linear": Model(Linear),
    "convolution": Model(Convolution, ((2, 3, 6, 6),)),
    "elementwise": Model(Elementwise, ((2, WIDTH), (2, WIDTH))),
    "attention": Model(Attention, ((1, 4, WIDTH),)),
    "activations": Model(Activations),
    "state": Model(State),
    "condition": Model(Condition, further=lambda: (torch.tensor(True),)),
}


def dynamic_shapes(inputs: tuple[torch.Tensor, ...]) -> Any:
    """Return those of inputs whose first size may be from 2 to `LARGEST`."""
    first = torch.export.Dim("first", min=2, max=LARGEST)
    return tuple({0: first} for _ in inputs)
