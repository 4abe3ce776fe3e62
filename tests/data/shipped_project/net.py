"""The firm's network, with torch's own random weights: its activations are sums that depend on the kernels."""

import torch
from torch import nn


def net() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the model in eval mode and one float32 [1, 3, 12, 12]."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Linear(16 * 8 * 8, 10)
    )
    return model.eval(), (torch.randn(1, 3, 12, 12),)
