"""Operators along one dimension, and sums, of tensors in channels-last memory."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Behind(nn.Module):
    """A pooling and a convolution, each along its width, its height and its channels."""

    def __init__(self, *operators: str) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.conv = nn.Conv2d(3, 4, 2, stride=2)
        self.operators = operators

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pooled, convolved = self.pool(x), self.conv(x)
        return tuple(
            getattr(self, operator)(image, dim)
            for operator in self.operators
            for image, dim in ((pooled, -1), (convolved, 3), (convolved, 2), (pooled, 1))
        )

    def softmax(self, image: torch.Tensor, dim: int) -> torch.Tensor:
        return functional.softmax(image, dim)

    def log_softmax(self, image: torch.Tensor, dim: int) -> torch.Tensor:
        return functional.log_softmax(image, dim)

    def mean(self, image: torch.Tensor, dim: int) -> torch.Tensor:
        return image.mean(dim)

    def amax(self, image: torch.Tensor, dim: int) -> torch.Tensor:
        return image.amax(dim, keepdim=True)

    def cat(self, image: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.cat((image, -image), dim)

    def select(self, image: torch.Tensor, dim: int) -> torch.Tensor:
        return image.select(dim, 1)


def image(data: Data) -> torch.Tensor:
    return data.tensor("x", 1, 3, 6, 8)


@case(guards="a softmax after a pooling or a convolution is one over the dimension that it names")
def softmax_behind(data: Data) -> Example:
    return Example(Behind("softmax", "log_softmax"), (image(data),))


@case(guards="reductions after a pooling or a convolution go over the dimension that they name")
def reductions_behind(data: Data) -> Example:
    return Example(Behind("mean", "amax"), (image(data),))


@case(guards="what is joined or cut after a pooling or a convolution is so along the dimension that it names")
def joined_behind(data: Data) -> Example:
    return Example(Behind("cat", "select"), (image(data),))


class Sums(nn.Module):
    """Sums of an input with itself, with another one, and with a pooling of it."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + x, x + y, functional.max_pool2d(x, 1) + y


@case(guards="a sum adds elements of like places where an input is channels-last")
def channels_last_sums(data: Data) -> Example:
    x = data.tensor("x", 1, 3, 3, 3).to(memory_format=torch.channels_last)
    return Example(Sums(), (x, data.tensor("y", 1, 3, 3, 3)))


class Reduced(nn.Module):
    """A sum, a mean and an average pool of an input, none of which XNNPACK has in this form, and a sum that it has."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum((1, 3)), x.mean(1), functional.avg_pool2d(x, 2, divisor_override=3), x + 1.0


@case(
    guards="kernels outside of delegates that read one memory layout alone get a channels-last input copied to it",
    backends=("xnnpack-fp32",),
)
def channels_last_outside(data: Data) -> Example:
    x = data.tensor("x", 1, 3, 4, 5).to(memory_format=torch.channels_last)
    return Example(Reduced(), (x,))


class NumbersFirst(nn.Module):
    """Numbers, and parameters of one element, before the tensor; the result is permuted."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((1, 1), 0.75))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (1 - x).t(), (self.factor * x).t(), (2 - y).permute(0, 2, 1), (x - 1).t()


@case(guards="a permutation after a number and a tensor permutes the tensor")
def numbers_first(data: Data) -> Example:
    return Example(NumbersFirst(), (data.tensor("x", 3, 3), data.tensor("y", 2, 3, 3)))


class BoundedPlace(nn.Module):
    """The place of the largest of a row, as an integer within bounds, and twice the row."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.argmax(-1).clamp(-1, 1), x + x


@case(guards="a bound of integers is made a tensor of integers", backends=("tosa-fp",))
def bounded_place(data: Data) -> Example:
    return Example(BoundedPlace(), (data.tensor("x", 5),))
