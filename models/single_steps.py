"""The smallest models that take long to lower: recurrent layers over one step, attention over two tokens."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Step(nn.Module):
    """A recurrent layer, called for one step."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps, _ = self.layer(x)
        return steps  # type: ignore[no-any-return]


@case(guards="an LSTM of one step is its gates alone", backends=("tosa-int",))
def lstm_step(data: Data) -> Example:
    return Example(Step(nn.LSTM(2, 2, batch_first=True)), (data.tensor("x", 1, 1, 2),))


@case(guards="a GRU of one step is its gates alone", backends=("tosa-int",))
def gru_step(data: Data) -> Example:
    return Example(Step(nn.GRU(2, 2, batch_first=True)), (data.tensor("x", 1, 1, 2),))


@case(guards="a plain recurrence of one step is a sum and its tanh", backends=("tosa-int",))
def rnn_step(data: Data) -> Example:
    return Example(Step(nn.RNN(2, 2, batch_first=True)), (data.tensor("x", 1, 1, 2),))


class Block(nn.Module):
    """A norm, attention over itself that looks back alone, and a GELU."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        attended = functional.scaled_dot_product_attention(normed, normed, normed, is_causal=True)
        return functional.gelu(attended)


@case(
    guards="layer norm, masked attention and GELU on two tokens decompose as in a whole transformer",
    backends=("tosa-fp",),
)
def two_tokens(data: Data) -> Example:
    return Example(Block(4), (data.tensor("x", 1, 1, 2, 4),))


@case(guards="a group norm alone takes the statistics of its groups")
def group_norm(data: Data) -> Example:
    return Example(nn.GroupNorm(2, 4), (data.tensor("x", 1, 4, 2, 2),))
