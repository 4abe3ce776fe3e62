"""Blocks of real networks, at sizes whose goldens a person can read."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


class SqueezeExcite(nn.Module):
    """Channel gates from the global average (MobileNetV3 with hard sigmoid)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gates = torch.relu(self.reduce(self.pool(x)))
        return x * nn.functional.hardsigmoid(self.expand(gates))


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, squeeze-excite, projection, and the residual sum."""

    def __init__(self, channels: int, expanded: int, squeezed: int) -> None:
        super().__init__()
        self.expansion = nn.Sequential(
            nn.Conv2d(channels, expanded, 1, bias=False), nn.BatchNorm2d(expanded), nn.Hardswish()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(expanded, expanded, 3, padding=1, groups=expanded, bias=False),
            nn.BatchNorm2d(expanded),
            nn.Hardswish(),
        )
        self.gates = SqueezeExcite(expanded, squeezed)
        self.projection = nn.Sequential(
            nn.Conv2d(expanded, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.projection(self.gates(self.depthwise(self.expansion(x))))  # type: ignore[no-any-return]


@case(
    guards="a depthwise separable block with squeeze-excite and a residual: layouts and broadcasts agree",
    also=("tosa-fp+int",),
)
def inverted_residual(data: Data) -> Example:
    return Example(InvertedResidual(channels=4, expanded=12, squeezed=4), (data.tensor("x", 1, 4, 8, 8),))


class SelfAttentionBlock(nn.Module):
    """Pre-norm multi-head self-attention with its residual, written out as products and a softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, tokens, width) as (batch, heads, tokens, width / heads)."""
        batch, tokens, width = x.shape
        return x.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        scores = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(x.shape))  # type: ignore[no-any-return]


@case(
    guards="a self-attention block: three projections of one input, layer norm, softmax, residual",
    also=("tosa-int16", "tosa-fp+int", "tosa-bf16", "xnnpack-dynamic"),
)
def self_attention(data: Data) -> Example:
    return Example(SelfAttentionBlock(width=8, heads=2), (data.tensor("x", 1, 6, 8),))


class TiedAutoencoder(nn.Module):
    """One weight encodes and, transposed, decodes; one refining layer is applied twice."""

    def __init__(self, width: int, code: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(width, code)
        self.refine = nn.Linear(code, code)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = torch.relu(self.encoder(x))
        code = torch.relu(self.refine(torch.relu(self.refine(code))))
        return nn.functional.linear(code, self.encoder.weight.t(), self.bias)


@case(
    guards="shared weights: used twice, and once more transposed, each user gets the right one",
    also=("xnnpack-dynamic",),
)
def shared_weights(data: Data) -> Example:
    return Example(TiedAutoencoder(width=12, code=6), (data.tensor("x", 3, 12),))
