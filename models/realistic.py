"""Networks that people ship, with weights and inputs as training leaves them: normal, not dyadic.

Their sums are not exact, so that rounding shows as it does elsewhere; their ranges are found by histograms, whose ends
lie on a grid that every machine finds. Those that accept imprecision are small and deep: of int8's codes few are left
at their end.
"""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case
from models.image_networks import KeywordSeparable, UNet
from models.networks import InvertedResidual, SelfAttentionBlock
from models.sequence_networks import CachedDecoderLayer, KeywordRecurrent, VisionTransformer

HISTOGRAM = "histogram-on-grid"


def trained(data: Data, module: nn.Module, *shapes: tuple[int, ...]) -> Example:
    """Return `module` with normal weights and with normal inputs of `shapes`."""
    inputs = tuple(data.normal(f"x{index}", *shape) for index, shape in enumerate(shapes))
    return Example(data.fill_normal(module), inputs, fill=False)


@case(
    guards="a keyword spotter on normal weights: batch norms fold, the scales of separable blocks hold",
    quantization=HISTOGRAM,
)
def trained_keyword_spotter(data: Data) -> Example:
    return trained(data, KeywordSeparable(features=16, words=8), (1, 1, 49, 10))


@case(
    guards="a MobileNet block on normal weights: hard-swish and gates between requantizations",
    quantization=HISTOGRAM,
    backends=("tosa", "xnnpack-fp32"),
)
def trained_mobilenet_block(data: Data) -> Example:
    return trained(data, InvertedResidual(channels=8, expanded=24, squeezed=8), (1, 8, 8, 8))


@case(
    guards="a decoding step on normal weights: cached keys and values keep their scales",
    quantization=HISTOGRAM,
    backends=("tosa-fp", "xnnpack"),
)
def trained_cached_decoder(data: Data) -> Example:
    return trained(data, CachedDecoderLayer(width=16, heads=2), (1, 1, 16), (1, 2, 3, 8), (1, 2, 3, 8))


@case(
    guards="a U-Net on normal weights: skips concatenate tensors of unequal scales",
    quantization=HISTOGRAM,
)
def trained_unet(data: Data) -> Example:
    return trained(data, UNet(channels=2, features=4), (1, 2, 16, 16))


class TemporalBlock(nn.Module):
    """Two causal dilated convolutions with batch norm, and the residual."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.past = (2 * dilation, 0)
        self.first = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.second = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norms[0](self.first(nn.functional.pad(x, self.past))))
        y = torch.relu(self.norms[1](self.second(nn.functional.pad(y, self.past))))
        return torch.relu(x + y)


@case(
    guards="a TCN on normal weights: causal padding on one side, dilation that doubles",
    quantization=HISTOGRAM,
)
def trained_tcn(data: Data) -> Example:
    blocks = [TemporalBlock(8, dilation) for dilation in (1, 2, 4)]
    return trained(data, nn.Sequential(nn.Conv1d(4, 8, 1), *blocks, nn.Conv1d(8, 2, 1)), (1, 4, 20))


@case(
    guards="a GRU on normal weights: the gates of unrolled steps, one rounding upon the other",
    quantization=HISTOGRAM,
    imprecise={"tosa-int": 0.2},
)
def trained_gru(data: Data) -> Example:
    return trained(data, KeywordRecurrent(bands=8, features=8, words=4), (1, 1, 8, 8))


@case(
    guards="a convolutional autoencoder on normal weights: strides go down and transposed ones up",
    quantization=HISTOGRAM,
)
def trained_autoencoder(data: Data) -> Example:
    module = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.ConvTranspose2d(12, 8, 2, stride=2), nn.ReLU()),
        *(nn.ConvTranspose2d(8, 1, 2, stride=2), nn.Sigmoid()),
    )
    return trained(data, module, (1, 1, 12, 12))


class Convolution(nn.Module):
    """The convolution of a Conformer: a gated pointwise one, a depthwise one over time, batch norm, SiLU."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gated = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.glu(self.gated(self.norm(x).transpose(1, 2)), dim=1)
        y = nn.functional.silu(self.batch_norm(self.depthwise(y)))
        return self.out(y).transpose(1, 2)  # type: ignore[no-any-return]


class ConformerBlock(nn.Module):
    """Half a feed-forward layer, attention, a convolution and the other half, each with its residual."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.halves = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
            )
            for _ in range(2)
        )
        self.attention = SelfAttentionBlock(width, heads)
        self.convolution = Convolution(width, kernel)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x + 0.5 * self.halves[0](x))
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.halves[1](x))  # type: ignore[no-any-return]


@case(
    guards="a Conformer block on normal weights: layouts turn twice between attention and convolution",
    quantization=HISTOGRAM,
    # Rounding may move it by a quarter on zeros, and not every operator can be judged by itself; it loses little.
    sqnr={"xnnpack-int8": 20},
)
def trained_conformer_block(data: Data) -> Example:
    return trained(data, ConformerBlock(width=8, heads=2, kernel=5), (1, 8, 8))


@case(
    guards="a ViT on normal weights: thirty roundings in a row",
    quantization=HISTOGRAM,
    # None of 244 quantizations leaves less than 23 dB alone; together they leave 16.7 to 20.7, by release. Not every
    # operator of XNNPACK's can be judged by itself on 1.1.0 and 1.2.0.
    sqnr={"tosa-int": 15, "xnnpack-int8": 20},
)
def trained_vision_transformer(data: Data) -> Example:
    return trained(data, VisionTransformer(channels=3, size=12, patch=4, width=8, classes=4), (1, 3, 12, 12))


class RootMeanSquareNorm(nn.Module):
    """Rows over the root of the mean of their squares, times a weight for each column."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5))


class RotaryAttention(nn.Module):
    """Causal attention whose queries and keys are turned by their place."""

    cosines: torch.Tensor
    sines: torch.Tensor
    mask: torch.Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.packed = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        half = width // heads // 2
        angles = torch.outer(torch.arange(length), 100.0 ** -(torch.arange(half) / half))
        # The same bits whatever computes them.
        self.register_buffer("cosines", (angles.cos() * 4096).round() / 4096)
        self.register_buffer("sines", (angles.sin() * 4096).round() / 4096)
        self.register_buffer("mask", torch.full((length, length), -16.0).triu(1))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        one, other = x.chunk(2, dim=-1)
        return torch.cat(
            (one * self.cosines - other * self.sines, one * self.sines + other * self.cosines), dim=-1
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        packed = (
            self.packed(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        query, key, value = self.turned(packed[0]), self.turned(packed[1]), packed[2]
        scores = torch.softmax(query @ key.transpose(-2, -1) * key.shape[-1] ** -0.5 + self.mask, dim=-1)
        return self.out((scores @ value).transpose(1, 2).reshape(x.shape))  # type: ignore[no-any-return]


class Gated(nn.Module):
    """A feed-forward layer gated by SiLU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]


class LanguageModel(nn.Module):
    """A decoder as small language models have it: embedding, two blocks, logits by the embedding's own weights."""

    def __init__(self, tokens: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.attentions = nn.ModuleList(RotaryAttention(width, heads, length) for _ in range(2))
        self.perceptrons = nn.ModuleList(Gated(width, 2 * width) for _ in range(2))
        self.norms = nn.ModuleList(RootMeanSquareNorm(width) for _ in range(5))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for index, (attention, perceptron) in enumerate(zip(self.attentions, self.perceptrons, strict=True)):
            x = x + attention(self.norms[2 * index](x))
            x = x + perceptron(self.norms[2 * index + 1](x))
        return nn.functional.linear(self.norms[4](x), self.embedding.weight)


@case(
    guards="a language model's decoder on normal weights: rotary places, gates, tied embedding",
    quantization=HISTOGRAM,
    # Rounding may move it by a quarter, and not every operator can be judged by itself on 1.1.0 and 1.2.0.
    sqnr={"xnnpack-int8": 20},
)
def trained_language_model(data: Data) -> Example:
    module = data.fill_normal(LanguageModel(tokens=24, width=16, heads=2, length=6))
    tokens = torch.from_numpy(data.generator("tokens").integers(0, 24, size=(1, 6)))
    return Example(module, (tokens,), fill=False)
