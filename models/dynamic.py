"""Models that choose, grow, remember, or compute in other types: control flow, dynamic shapes, state, dtypes.

State starts at zero: a ``.pte`` does not hold the first value of a buffer that the model changes.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.export import Dim

from executorch_goldens import Data, Example, case


class Choice(nn.Module):
    """One of two branches by a switch of one element; both read the input and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 4))

    def forward(self, switch: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        def scaled(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return x * weight

        def shifted(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return x + 2.0 * weight

        y = torch.relu(x)
        return torch.cond(switch > 0.5, scaled, shifted, (y, self.weight)) + 1.0  # type: ignore[no-any-return]


@case(
    guards="both branches of a condition are lowered, and the one that the input chooses runs",
    also=("tosa-fp+cf",),
)
def condition(data: Data) -> Example:
    return Example(Choice(), (torch.full((1,), 0.75), data.tensor("x", 3, 4)))


class Doubling(nn.Module):
    """Doubles its input until its sum is large enough, by a weight that the loop reads and does not change."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def small(y: torch.Tensor) -> torch.Tensor:
            return y.sum() < 20.0

        def more(y: torch.Tensor) -> tuple[torch.Tensor]:
            return (y + torch.abs(self.weight) + 1.0,)

        (y,) = torch.ops.higher_order.while_loop(small, more, (torch.abs(x),), ())
        return y * 0.5  # type: ignore[no-any-return]


@case(
    guards="a loop is lowered with its condition and its body, and ends after the same number of rounds",
    also=("tosa-fp+cf",),
    backends=("tosa-fp",),
)
def loop(data: Data) -> Example:
    return Example(Doubling(), (data.tensor("x", 3, 4),))


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.hidden(x)))  # type: ignore[no-any-return]


@case(guards="linear layers keep a dynamic batch dynamic")
def dynamic_batch(data: Data) -> Example:
    shapes = ({0: Dim("batch", min=1, max=8)},)
    return Example(Perceptron(), (data.tensor("x", 3, 6),), dynamic_shapes=shapes)


class Counter(nn.Module):
    """Counts its calls in an int32 buffer and adds the count."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * 2.0 + self.calls


@case(guards="a counter that the model changes is no constant, and running it before leaves no trace")
def call_counter(data: Data) -> Example:
    return Example(Counter(), (data.tensor("x", 2, 3),))


class RunningState(nn.Module):
    """A leaky average of earlier inputs, returned and kept."""

    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(2, 3))
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.copy_(0.5 * self.state + 0.5 * torch.tanh(self.linear(x)))
        return self.state * 4.0


@case(guards="a state that a delegate reads and the model writes back is neither folded nor lost")
def running_state(data: Data) -> Example:
    return Example(RunningState(), (data.tensor("x", 2, 3),))


class KeyValueCache(nn.Module):
    """Keys and values of one head in buffers; a step writes its own at `position` and attends to all."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, length, width))
        self.register_buffer("values", torch.zeros(1, length, width))
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(1, position, self.key(x))
        self.values.index_copy_(1, position, self.value(x))
        return torch.softmax(self.query(x) @ self.keys.transpose(1, 2), dim=-1) @ self.values


@case(guards="keys and values are copied to an int64 position of mutable caches")
def cache_index_copy(data: Data) -> Example:
    return Example(KeyValueCache(length=4, width=6), (data.tensor("x", 1, 1, 6), torch.tensor([2])))


class Window(nn.Module):
    """Shifts a window of past frames by one with slice assignments and convolves it."""

    past: torch.Tensor

    def __init__(self, frames: int, bands: int) -> None:
        super().__init__()
        self.register_buffer("past", torch.zeros(1, bands, frames))
        self.conv = nn.Conv1d(bands, bands, frames)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.past[:, :, :-1] = self.past[:, :, 1:].clone()
        self.past[:, :, -1:] = x
        return self.conv(self.past)  # type: ignore[no-any-return]


@case(guards="slices assigned to a mutable buffer stand where they were written")
def sliding_window(data: Data) -> Example:
    return Example(Window(frames=3, bands=4), (data.tensor("x", 1, 4, 1),))


class Tokens(nn.Module):
    """Rows of a table by int32 positions, and embeddings by int64 tokens, summed."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.positions = nn.Parameter(torch.zeros(6, 4))
        self.head = nn.Linear(4, 3)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens) + self.positions[positions])  # type: ignore[no-any-return]


@case(guards="int64 tokens and int32 positions index tables in one model, each in its own type")
def token_and_position_ids(data: Data) -> Example:
    tokens = torch.from_numpy(data.generator("tokens").integers(0, 10, size=(1, 5)))
    return Example(Tokens(), (tokens, torch.tensor([[4, 0, 2, 2, 1]], dtype=torch.int32)))


class Integers(nn.Module):
    """Integer arithmetic and a comparison that chooses between float values."""

    def forward(self, n: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return n * 2 + 1, torch.where(n > 1, x, y)


@case(guards="int32 arithmetic stays exact and steers a float result", backends=("tosa",))
def int32_arithmetic(data: Data) -> Example:
    numbers = torch.tensor([[3, -2, 1], [0, 2, 5]], dtype=torch.int32)
    return Example(Integers(), (numbers, data.tensor("x", 2, 3), data.tensor("y", 2, 3)))
