"""Models as a firm has them: nobody of them knows that they will be tested."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class WakeWord(nn.Module):
    """A depthwise separable network over 49 frames of 10 coefficients (DS-CNN, Zhang et al. 2017)."""

    def __init__(self, width: int = 24, words: int = 12) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, (10, 4), stride=2, padding=(5, 1)), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(width, width, 3, padding=1, groups=width),
                    nn.BatchNorm2d(width),
                    nn.ReLU(),
                    nn.Conv2d(width, width, 1),
                    nn.BatchNorm2d(width),
                    nn.ReLU(),
                )
                for _ in range(3)
            )
        )
        self.words = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.words(self.blocks(self.stem(x)).mean((2, 3)))


class Detector(nn.Module):
    """Boxes, scores and masks at two scales, as a dictionary of six."""

    def __init__(self, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.further = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.boxes = nn.ModuleList(nn.Conv2d(width, 4, 1) for _ in range(2))
        self.scores = nn.ModuleList(nn.Conv2d(width, classes, 1) for _ in range(2))
        self.masks = nn.ModuleList(nn.Conv2d(width, 1, 1) for _ in range(2))

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        large = functional.relu(self.down(image))
        small = functional.relu(self.further(large))
        found = {}
        for name, scale, at in (("large", large, 0), ("small", small, 1)):
            found[f"boxes_{name}"] = 32.0 * torch.sigmoid(self.boxes[at](scale))
            found[f"scores_{name}"] = torch.sigmoid(self.scores[at](scale))
            found[f"masks_{name}"] = self.masks[at](scale)
        return found


class Denoiser(nn.Module):
    """A GRU cell that keeps its state from frame to frame."""

    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * size, 2 * size)
        self.candidate = nn.Linear(2 * size, size)
        self.mask = nn.Linear(size, size)
        self.register_buffer("state", torch.zeros(1, size))

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        reset, update = torch.sigmoid(self.gates(torch.cat([frame, self.state], 1))).chunk(2, 1)
        candidate = torch.tanh(self.candidate(torch.cat([frame, reset * self.state], 1)))
        self.state.copy_((1 - update) * candidate + update * self.state)
        return frame * torch.sigmoid(self.mask(self.state))


class Predictor(nn.Module):
    """An LSTM whose state the caller keeps: nested in a dictionary."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, size)
        self.out = nn.Linear(size, 4)

    def forward(
        self, x: torch.Tensor, state: dict[str, tuple[torch.Tensor, torch.Tensor]], scale: float = 1.0
    ) -> tuple[torch.Tensor, dict[str, tuple[torch.Tensor, torch.Tensor]]]:
        hidden, cell = self.cell(x, state["layer"])
        return scale * self.out(hidden), {"layer": (hidden, cell)}


class Block(nn.Module):
    """A decoder's layer with a cache of keys and values."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.length = heads, length
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.register_buffer("keys", torch.zeros(1, heads, length, width // heads))
        self.register_buffer("values", torch.zeros(1, heads, length, width // heads))

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        steps, width = x.shape[1], x.shape[2]
        query, key, value = (
            each.view(1, steps, self.heads, -1).transpose(1, 2)
            for each in self.qkv(self.norms[0](x)).split(width, 2)
        )
        self.keys.index_copy_(2, at, key)
        self.values.index_copy_(2, at, value)
        seen = torch.arange(self.length).unsqueeze(0) <= at.unsqueeze(1)
        weights = query @ self.keys.transpose(2, 3) / (width // self.heads) ** 0.5
        weights = weights.masked_fill(~seen, -1e4).softmax(-1)
        x = x + self.out((weights @ self.values).transpose(1, 2).reshape(1, steps, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Decoder(nn.Module):
    """A small language model: tokens and their places in, logits out."""

    def __init__(
        self, tokens: int = 32, width: int = 64, heads: int = 2, layers: int = 2, length: int = 16
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(Block(width, heads, length) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens)

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, at)
        return self.head(self.norm(x))


class Step(nn.Module):
    """A method of a language model: the logits of every token that it is given."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self.decoder(tokens, at)


class Last(Step):
    """The logits of the last token alone, as a prefill gives them."""

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return super().forward(tokens, at)[:, -1:]


class Ranker(nn.Module):
    """A multilayer perceptron over a batch of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.layers(features).squeeze(1)
