"""Vulkan's passes and serializer, each with a model of its own."""

import torch
from torch import nn

from executorch_goldens import Data, Example, case


@case(
    guards="a linear layer and its activation: weights in the named data, memory that is used again",
    backends=("vulkan",),
)
def perceptron(data: Data) -> Example:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), nn.Sigmoid())
    return Example(model, (data.tensor("x", 3, 6),))


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # In a Sequential its name begins with a digit, and 1.4.1 looks for that name in vain.
        self.convolution, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu6(self.norm(self.convolution(x)))


@case(guards="batch norm folded into a convolution, and a clamp fused with it", backends=("vulkan",))
def convolution(data: Data) -> Example:
    return Example(Convolution().eval(), (data.tensor("x", 1, 3, 6, 6),))


@case(
    guards="a depthwise separable block: two layouts of textures, with transitions between them",
    backends=("vulkan",),
)
def separable(data: Data) -> Example:
    model = nn.Sequential(
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Hardswish(),
        nn.Conv2d(4, 6, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )
    return Example(model, (data.tensor("x", 1, 4, 6, 6),))


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        one, two, three = x.split([2, 3, 1], dim=1)
        return torch.cat((three, one), dim=1), two * 2.0


@case(guards="an operator that gives a list of values", backends=("vulkan",))
def halves(data: Data) -> Example:
    return Example(Halves(), (data.tensor("x", 2, 6),))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.query(x) @ self.key(x).transpose(1, 2) * 0.125, dim=-1)
        return weights @ self.value(x)


@case(
    guards="attention: matrices multiplied by each other, softmax over the last dimension",
    backends=("vulkan",),
)
def attention(data: Data) -> Example:
    return Example(Attention(), (data.tensor("x", 1, 4, 8),))


@case(guards="layer norm between two linear layers", backends=("vulkan",))
def normalised(data: Data) -> Example:
    return Example(nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU()), (data.tensor("x", 2, 6),))


class Sorted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(torch.tanh(x) + x, dim=1).values * x


@case(guards="two delegates with an operator between them that Vulkan has not", backends=("vulkan",))
def two_delegates(data: Data) -> Example:
    return Example(Sorted(), (data.tensor("x", 2, 5),))


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.pow(torch.clamp(x.mean(1), 1.0, 4.0), 2.0) + x.sum(1) * 0.5


@case(guards="an int and a float of one value: 1 as a dimension and 1.0 as a bound", backends=("vulkan",))
def numbers(data: Data) -> Example:
    return Example(Numbers(), (data.tensor("x", 2, 5),))


class Tail(nn.Module):
    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("rows", table[5:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.rows)


@case(guards="a weight that is a part of a larger tensor: its own bytes are serialized", backends=("vulkan",))
def tail(data: Data) -> Example:
    return Example(Tail(data.tensor("table", 8, 4)), (data.tensor("x", 2, 4),), fill=False)


class RunningSum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2.0


@case(guards="a state that the delegate keeps from one call to the next", backends=("vulkan",))
def running_sum(data: Data) -> Example:
    return Example(RunningSum(), (data.tensor("x", 2, 3),), fill=False)


@case(guards="a batch that may change", backends=("vulkan",))
def batches(data: Data) -> Example:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    batch = torch.export.Dim("batch", min=1, max=8)
    return Example(model, (data.tensor("x", 3, 4),), dynamic_shapes=({0: batch},))
