"""Small models for defects that upstream has seen beside the four reports; ``guards`` has the numbers."""

from __future__ import annotations

import torch
from torch import nn

from models.registry import Data, Example, case


class IdentityPermute(nn.Module):
    """A permutation that moves nothing, alone in its partition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 1)


@case(guards="a delegate never declares an output that no operator writes (#22436)")
def identity_permute(data: Data) -> Example:
    return Example(IdentityPermute(), (data.tensor("x", 3, 4),))


class FloatAndInteger(nn.Module):
    """Buffers of equal values and different dtypes, each added to an input of its own dtype."""

    floats: torch.Tensor
    integers: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("floats", torch.arange(6, dtype=torch.float32).reshape(2, 3))
        self.register_buffer("integers", torch.arange(6, dtype=torch.int32).reshape(2, 3))

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + self.floats, n + self.integers


@case(guards="constants of equal values and different dtypes are not merged (#11781)")
def equal_values_two_dtypes(data: Data) -> Example:
    counts = data.tensor("n", 2, 3, bits=0).to(torch.int32)
    return Example(FloatAndInteger(), (data.tensor("x", 2, 3), counts))


class ConstantOperandAndBias(nn.Module):
    """A product and a bias whose constants have equal values."""

    bias: torch.Tensor
    left: torch.Tensor

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("bias", values)
        self.register_buffer("left", values.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.left @ x + self.bias


@case(guards="merged equal constants keep one RESCALE for each use (#21041, #21106, #21380)")
def equal_operand_and_bias(data: Data) -> Example:
    return Example(ConstantOperandAndBias(data.tensor("values", 4, 4)), (data.tensor("x", 4, 4),))


class HalvesAdded(nn.Module):
    """A convolution cut in halves along its channels; each half gets its own output scale."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y[:, :4] + y[:, 4:]  # type: ignore[no-any-return]


@case(guards="a quantized slice whose output scale differs from its input's runs (#21831)")
def sliced_halves(data: Data) -> Example:
    return Example(HalvesAdded(), (data.tensor("x", 1, 3, 8, 8),))


@case(guards="a quantized convolution with padding='same' and an even kernel runs (#20517)")
def same_padding_even_kernel(data: Data) -> Example:
    module = nn.Sequential(nn.Conv2d(1, 4, kernel_size=(4, 1), padding="same"), nn.ReLU())
    return Example(module, (data.tensor("x", 1, 1, 16, 1),))


@case(guards="a channels-last input with one channel is not taken for a contiguous one (#19153)")
def one_channel_channels_last(data: Data) -> Example:
    x = data.tensor("x", 1, 1, 7, 5).to(memory_format=torch.channels_last)
    return Example(nn.Conv2d(1, 5, kernel_size=1), (x,))


@case(guards="batch norm folds whatever the parameters are called; here their names start with a digit")
def numbered_batch_norm(data: Data) -> Example:
    module = nn.Sequential(nn.Conv2d(2, 3, kernel_size=1), nn.BatchNorm2d(3))
    return Example(module, (data.tensor("x", 1, 2, 4, 4),))
