"""Small models for defects that upstream has seen beside the four issues; ``guards`` has the numbers."""

from __future__ import annotations

import torch
from torch import nn

from executorch_goldens import Data, Example, case


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


@case(
    guards="a quantized slice whose output scale differs from its input's runs (#21831)",
    # On the grid the scales are one.
    quantization="histogram",
)
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


class Joined(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat((x, y), dim=1)


class JoinedThenDoubled(nn.Module):
    """A concatenation in a part of the model that stays int8, and a following sum that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Joined()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = self.head(x, y)
        return z + z  # type: ignore[no-any-return]


@case(
    guards="a change from int8 to int16 is not folded through the cat before it (#18999)",
    quantization="int8-head",
    also=("tosa-int16",),
)
def cat_int8_to_int16(data: Data) -> Example:
    return Example(JoinedThenDoubled(), (data.tensor("x", 1, 2, 4), data.tensor("y", 1, 3, 4)))


class ConstantTerms(nn.Module):
    """A sum and a product with constants, each an operand of an elementwise operator."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3, 4))
        self.scale = nn.Parameter(torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.shift) * self.scale


@case(
    guards="constants of elementwise operators are int16 where activations are (#19966)", also=("tosa-int16",)
)
def int16_constant_terms(data: Data) -> Example:
    return Example(ConstantTerms(), (data.tensor("x", 3, 4),))


class Heads(nn.Module):
    """Three heads of one shape on one trunk, returned in another order than they are computed, one of them nested."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Conv2d(2, 4, 3, padding=1)
        self.heads = nn.ModuleList(nn.Conv2d(4, 2, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        y = torch.relu(self.trunk(x))
        first, second, third = (head(y) for head in self.heads)
        return third, (first, second)


@case(guards="a delegate run alone gives heads of one shape in its graph's order (#15826, #17138, #18486)")
def heads_in_another_order(data: Data) -> Example:
    return Example(Heads(), (data.tensor("x", 1, 2, 4, 4),))


class Pieces(nn.Module):
    """Pieces of a split of one tensor, returned backwards, and the sum of two of them."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, second, third = torch.split(x * 0.5, 2, dim=1)
        return third, second, first, first + third


@case(guards="pieces of one tensor leave a delegate in the declared order (#17276, #21730)")
def pieces_backwards(data: Data) -> Example:
    return Example(Pieces(), (data.tensor("x", 1, 6, 3),))


class CrossAttention(nn.Module):
    """Two decoder layers whose keys and values are projections of one memory."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.queries = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.keys = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.values = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        for query, key, value in zip(self.queries, self.keys, self.values, strict=True):
            scores = query(x) @ key(memory).transpose(-2, -1)
            x = x + torch.softmax(scores, dim=-1) @ value(memory)
        return x


@case(
    guards="layers that share a dynamically quantized memory make no cycle of partitions (#18397)",
    also=("xnnpack-dynamic",),
)
def shared_dynamic_memory(data: Data) -> Example:
    return Example(
        CrossAttention(width=8, layers=2), (data.tensor("x", 1, 3, 8), data.tensor("memory", 1, 5, 8))
    )


class CatBeforeConv(nn.Module):
    """A convolution of a concatenation, which has a list for its first argument."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(5, 4, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.cat((x, y), dim=1))  # type: ignore[no-any-return]


@case(
    guards="a dynamically quantized convolution takes a cat, whose argument is a list (#18944)",
    also=("xnnpack-dynamic",),
)
def dynamic_conv_of_cat(data: Data) -> Example:
    return Example(CatBeforeConv(), (data.tensor("x", 1, 2, 6, 6), data.tensor("y", 1, 3, 6, 6)))


class ScaledBesideConv(nn.Module):
    """One input that a factor for each channel scales and that a convolution takes as well."""

    factors: torch.Tensor

    def __init__(self, factors: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("factors", factors)
        self.first = nn.Conv2d(3, 3, 3, padding=1)
        self.second = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x * self.factors
        return self.second(self.first(x) + scaled)  # type: ignore[no-any-return]


@case(guards="factors for each channel keep the layout of what they scale (#20376)")
def channel_factors_beside_conv(data: Data) -> Example:
    factors = 1.0 + data.tensor("factors", 1, 3, 1, 1, limit=8)
    return Example(ScaledBesideConv(factors), (data.tensor("x", 1, 3, 5, 7),))


class TwoLayouts(nn.Module):
    """The result of a convolution, combined with tensors that never were channels-last (input, table, flat view)."""

    table: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.conv(x)
        mixed = torch.cat((y * self.table, x), dim=1) - 0.5
        return mixed, y.reshape(1, 3, -1) + x.reshape(1, 3, -1)


@case(guards="operands that met in NHWC and NCHW are brought to one layout (#21637, #20376)")
def two_layouts_meet(data: Data) -> Example:
    return Example(TwoLayouts(data.tensor("table", 1, 3, 3, 4)), (data.tensor("x", 1, 3, 3, 4),))


class RectifiedProduct(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * y)


@case(guards="a product with a fused ReLU is clamped at zero (#17166)")
def rectified_product(data: Data) -> Example:
    return Example(RectifiedProduct(), (data.tensor("x", 3, 4), data.tensor("y", 3, 4)))


@case(
    guards="a layer that has no bias is quantized with the ReLU behind it",
    backends=("xnnpack-int8",),
)
def rectified_layer_without_bias(data: Data) -> Example:
    return Example(nn.Sequential(nn.Linear(4, 3, bias=False), nn.ReLU()), (data.tensor("x", 2, 4),))


class StateBesideItsUpdate(nn.Module):
    """A value that is written to a row of a mutable table and added to a layer's output for the table."""

    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(4, 6))
        self.first = nn.Linear(6, 6)
        self.last = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        self.table[row] = y[:1]
        return self.last(self.table) + y  # type: ignore[no-any-return]


@case(guards="a partition that lost its middle, but whose ends are joined, is no cycle (#18191)")
def state_beside_its_update(data: Data) -> Example:
    return Example(StateBesideItsUpdate(), (data.tensor("x", 4, 6), torch.tensor([2])))


class TransposedWithInputBias(nn.Module):
    """A linear layer over a transposed input, so that it decomposes to a product and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 6))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x.transpose(1, 2), self.weight, bias)


@case(guards="a linear layer over a transposed input, with an input for its bias, lowers to XNNPACK")
def transposed_linear_input_bias(data: Data) -> Example:
    return Example(TransposedWithInputBias(), (data.tensor("x", 2, 6, 3), data.tensor("bias", 5)))
