"""Recurrent layers beside the LSTM of ``layers.py``."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class Recurrent(nn.Module):
    """A recurrent layer and its last state, both returned."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        steps, last = self.layer(x)
        return steps, last


@case(guards="a GRU unrolls to gates in a stable order; its last state is the last step")
def gru(data: Data) -> Example:
    layer = nn.GRU(4, 3, batch_first=True)
    return Example(Recurrent(layer), (data.tensor("x", 1, 2, 4),))


@case(guards="a plain recurrence in both directions: the second runs backwards, and is put beside the first")
def rnn(data: Data) -> Example:
    layer = nn.RNN(4, 3, bidirectional=True, bias=False, nonlinearity="relu")
    return Example(Recurrent(layer), (data.tensor("x", 2, 2, 4),))
