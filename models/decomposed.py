"""Single operators of those that are decomposed before a model is quantized."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Calls(nn.Module):
    """Calls a function."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def added_in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return twice `y` added to `x`, and the sum of both added to that."""
    z = torch.add(x, y, alpha=2)
    z += x
    z += y
    return z


@case(guards="alpha and sums in place are rewritten before they are quantized", backends=("tosa-int",))
def alpha_in_place(data: Data) -> Example:
    return Example(Calls(added_in_place), (data.tensor("x", 1, 3, 4), data.tensor("y", 1, 3, 4)))


@case(guards="a sign is two comparisons and their difference", backends=("tosa-int",))
def sign(data: Data) -> Example:
    return Example(Calls(torch.sign), (data.tensor("x", 1, 3, 4),))


@case(guards="half of a tensor gates the other half", backends=("tosa-int",))
def gate(data: Data) -> Example:
    return Example(Calls(functional.glu), (data.tensor("x", 1, 3, 4),))


def products(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Return ``x @ y @ y + z``."""
    return torch.addmm(z, torch.einsum("ij,jk->ik", x, y), y)


@case(
    guards="a product of matrices that is written as a sum over an index, and one with a sum, are products",
    backends=("tosa-int",),
)
def two_products(data: Data) -> Example:
    return Example(Calls(products), (data.tensor("x", 2, 3), data.tensor("y", 3, 3), data.tensor("z", 2, 3)))


@case(guards="a layer norm alone decomposes to means, a root and products", backends=("tosa-int",))
def one_layer_norm(data: Data) -> Example:
    return Example(nn.LayerNorm(4), (data.tensor("x", 1, 2, 4),))


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return attention to earlier positions."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@case(
    guards="attention alone decomposes to products, a mask and a softmax",
    backends=("tosa-fp", "tosa-int", "tosa-bf16"),
    also=("tosa-bf16",),
    # The mask is added to the scores and takes their range: one code is more than all of them.
    sqnr={"tosa-int": 6},
)
def one_attention(data: Data) -> Example:
    q, k, v = (data.tensor(name, 1, 1, 2, 4) for name in "qkv")
    return Example(Calls(attended), (q, k, v))


@case(guards="attention without a mask decomposes to products and a softmax", backends=("tosa-int",))
def plain_attention(data: Data) -> Example:
    q, k, v = (data.tensor(name, 1, 1, 2, 4) for name in "qkv")
    return Example(Calls(functional.scaled_dot_product_attention), (q, k, v))


@case(guards="a cosine similarity decomposes to norms, and these to roots of sums", backends=("tosa-int",))
def similarity(data: Data) -> Example:
    # Shifted from zero: no row is short.
    x, y = (data.tensor(name, 2, 4) + 0.5 for name in "xy")
    return Example(Calls(functional.cosine_similarity), (x, y))


@case(guards="rounding alone decomposes to floors and ceilings", backends=("tosa-int",))
def rounded(data: Data) -> Example:
    return Example(Calls(torch.round), (data.tensor("x", 1, 3, 4),))
