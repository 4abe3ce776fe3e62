"""Two operators of one kind in a row: the second is rewritten from the rewritten first."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class AnyOfAny(nn.Module):
    """True if any row has any element above zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.any(torch.any(x > 0.0, dim=1, keepdim=True))


@case(guards="an any() of an any() finds the shape of the first (#19154)", backends=("tosa-fp",))
def any_of_any(data: Data) -> Example:
    # Odd 32nds: none is zero.
    return Example(AnyOfAny(), (data.tensor("x", 2, 4) + 2.0**-5,))


class Stacked(nn.Module):
    """A recurrent layer over the results of another."""

    def __init__(self, first: nn.RNNBase, second: nn.RNNBase) -> None:
        super().__init__()
        self.first = first
        self.second = second

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.first(x)
        z, _ = self.second(y)
        return z  # type: ignore[no-any-return]


@case(guards="an RNN over the results of another finds their shape (#19154)", backends=("tosa-int",))
def rnn_of_rnn(data: Data) -> Example:
    return Example(Stacked(nn.RNN(3, 2), nn.RNN(2, 2)), (data.tensor("x", 1, 1, 3),))


@case(guards="an LSTM over the results of another finds their shape (#19154)", backends=("tosa-int",))
def lstm_of_lstm(data: Data) -> Example:
    return Example(Stacked(nn.LSTM(3, 2), nn.LSTM(2, 2)), (data.tensor("x", 1, 1, 3),))
