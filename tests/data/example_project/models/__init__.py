"""The models of this product, as its goldens export them."""

from pathlib import Path

import numpy as np
import torch

from executorch_goldens import Data, Example, case

CHECKPOINT = Path(__file__).with_name("spotter.npz")


class Spotter(torch.nn.Module):
    """Tells eight keywords apart."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(16, 12)
        self.words = torch.nn.Linear(12, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.words(torch.relu(self.hidden(x)))


class Scaled(torch.nn.Module):
    """Scales a sum by its peak, which no backend computes."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        return torch.max(z) * z


def trained() -> Spotter:
    """Return the network with the weights that it ships."""
    model = Spotter()
    with np.load(CHECKPOINT) as weights:
        model.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights.files})
    return model


@case(guards="a linear layer keeps its bias")
def linear(data: Data) -> Example:
    return Example(torch.nn.Linear(4, 3), (data.tensor("x", 2, 4),))


@case(guards="what stands between two delegates runs outside")
def two_delegates(data: Data) -> Example:
    return Example(Scaled(), (data.tensor("x", 2, 4), data.tensor("y", 2, 4)))


@case(guards="the keyword spotter with the weights that it ships")
def spotter(data: Data) -> Example:
    return Example(trained(), (data.tensor("x", 1, 16),), fill=False)
