"""Whole networks over tokens, frames and feature vectors."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from executorch_goldens import Data, Example, case
from models.networks import SelfAttentionBlock


def dense(features: int, units: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(features, units), nn.BatchNorm1d(units), nn.ReLU())


@case(
    guards="MLPerf Tiny's deep autoencoder: batch norm after linear layers, a code of eight numbers",
    also=("xnnpack-dynamic",),
)
def deep_autoencoder(data: Data) -> Example:
    widths = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
    layers = [dense(width, units) for width, units in itertools.pairwise(widths)]
    return Example(nn.Sequential(*layers, nn.Linear(128, 640)), (data.tensor("x", 1, 640),))


class EncoderBlock(nn.Module):
    """Pre-norm attention and a two-layer perceptron with GELU, each with its residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttentionBlock(width, heads)
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.attention(x)
        return y + self.perceptron(y)  # type: ignore[no-any-return]


class VisionTransformer(nn.Module):
    """Patches to tokens by a strided convolution, a class token before them, positions, two blocks, a head."""

    def __init__(self, channels: int, size: int, patch: int, width: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(EncoderBlock(width, heads=2), EncoderBlock(width, heads=2))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.token, tokens), dim=1) + self.positions
        return self.head(self.blocks(tokens)[:, 0])  # type: ignore[no-any-return]


@case(
    guards="a ViT: a constant class token is concatenated before tokens that a convolution made",
    # Attention is rounded in each of its steps: a little more than a tenth.
    imprecise={"xnnpack-int8": 0.2},
)
def vision_transformer(data: Data) -> Example:
    module = VisionTransformer(channels=3, size=12, patch=4, width=8, classes=4)
    return Example(module, (data.tensor("x", 1, 3, 12, 12),))


class CachedDecoderLayer(nn.Module):
    """One decoding step: attends to past keys and values and its own, and hands all of them on."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.gate = nn.Linear(width, 2 * width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 1, width) as (batch, heads, 1, width / heads)."""
        return x.reshape(x.shape[0], 1, self.heads, -1).transpose(1, 2)

    def forward(
        self, x: torch.Tensor, past_keys: torch.Tensor, past_values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = self.norm(x)
        keys = torch.cat((past_keys, self.split(self.key(y))), dim=2)
        values = torch.cat((past_values, self.split(self.value(y))), dim=2)
        query = self.split(self.query(y))
        scores = torch.softmax(query @ keys.transpose(-2, -1) * query.shape[-1] ** -0.5, dim=-1)
        x = x + self.out((scores @ values).transpose(1, 2).reshape(x.shape))
        x = x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return x, keys, values


@case(guards="a decoding step hands on grown keys and values beside its result, each in its output slot")
def cached_decoder_layer(data: Data) -> Example:
    past = (data.tensor("past_keys", 1, 2, 3, 4), data.tensor("past_values", 1, 2, 3, 4))
    return Example(CachedDecoderLayer(width=8, heads=2), (data.tensor("x", 1, 1, 8), *past))


class KeywordRecurrent(nn.Module):
    """A convolution over frames, a GRU over its output, and a linear layer on the last step."""

    def __init__(self, bands: int, features: int, words: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, features, kernel_size=(4, bands), stride=(2, 1))
        self.gru = nn.GRU(features, features, batch_first=True)
        self.head = nn.Linear(features, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = torch.relu(self.conv(x)).squeeze(3).transpose(1, 2)
        steps, _ = self.gru(frames)
        return self.head(steps[:, -1])  # type: ignore[no-any-return]


@case(guards="a keyword spotter: a GRU unrolls after a convolution whose layout it does not share")
def keyword_gru(data: Data) -> Example:
    return Example(KeywordRecurrent(bands=8, features=6, words=4), (data.tensor("x", 1, 1, 8, 8),))
