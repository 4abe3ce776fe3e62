"""Attention through torch's own operators, with and without masks."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case

#: Batch, heads, tokens, width of a head.
SHAPE = (1, 2, 5, 4)


class ScaledAttention(nn.Module):
    """Attention to all tokens with a scale of its own, and to earlier tokens with the usual one."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            functional.scaled_dot_product_attention(q, v, k, scale=0.75),
            functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        )


@case(
    guards="attention decomposes with its scale on both operands; the causal flag hides later tokens only",
    # The mask is added to the scores and takes their range: one code is more than all of them.
    sqnr={"tosa-int": 14},
)
def scaled_attention(data: Data) -> Example:
    q, k, v = (data.tensor(name, *SHAPE) for name in "qkv")
    return Example(ScaledAttention(), (q, k, v))


class MaskedAttention(nn.Module):
    """Attention under an additive mask that is an input, and a boolean one that is a constant."""

    allowed: torch.Tensor

    def __init__(self, allowed: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("allowed", allowed)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            functional.scaled_dot_product_attention(q, k, v, attn_mask=bias),
            functional.scaled_dot_product_attention(q, k, v, attn_mask=self.allowed),
        )


@case(
    guards="additive and boolean attention masks reach the softmax; minus infinity becomes a number",
    # As above.
    sqnr={"tosa-int": 14},
)
def masked_attention(data: Data) -> Example:
    q, k, v = (data.tensor(name, *SHAPE) for name in "qkv")
    tokens = SHAPE[2]
    # Every token may look at itself: no row of the mask is empty.
    allowed = torch.eye(tokens, dtype=torch.bool) | (data.tensor("allowed", tokens, tokens) > 0)
    return Example(MaskedAttention(allowed), (q, k, v, data.tensor("bias", 1, 1, tokens, tokens, bits=3)))


class MultiheadSelfAttention(nn.Module):
    """torch's multi-head attention over one input, its averaged weights returned as well."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, weights = self.attention(x, x, x)
        return y, weights


@case(
    guards="torch's multi-head attention: one packed projection, cut in three",
    also=("xnnpack-dynamic",),
)
def multihead_attention(data: Data) -> Example:
    return Example(MultiheadSelfAttention(width=8, heads=2), (data.tensor("x", 1, 5, 8),))
