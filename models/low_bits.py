"""Linear layers with weights of four bits or activations quantized per token, as language models are shipped.

torchao writes the quantization into the model itself, before export, so these are float models to the harness: what
XNNPACK fuses is the pattern of quantize, dequantize and linear.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401 - registers torch.ops.quantized_decomposed

from executorch_goldens import Data, Example, case

#: Inputs whose weights share a scale: the fewest that XNNPACK takes.
GROUP = 32

quantized = torch.ops.quantized_decomposed


@case(
    guards="int4 weights in groups of 32, as torchao's 8da4w writes them, reach XNNPACK's own kernels",
    backends=("xnnpack-fp32",),
)
def int4_weights(data: Data) -> Example:
    # A run that takes everything from the store needs no torchao, which takes seconds to import.
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    module = data.fill(nn.Sequential(nn.Linear(2 * GROUP, GROUP), nn.ReLU(), nn.Linear(GROUP, 8)))
    quantize_(
        module,
        Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4,  # type: ignore[attr-defined]
            weight_granularity=PerGroup(GROUP),
        ),
    )
    return Example(module, (data.tensor("x", 3, 2 * GROUP),), fill=False)


@case(
    guards="int8 weights by row, which torchao writes without quantizing activations, keep their scales",
    backends=("xnnpack-fp32",),
    releases=("1.3.1", "1.4.1", "1.5.1"),
)
def weight_only_int8(data: Data) -> Example:
    from torchao.quantization import IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerAxis

    module = data.fill(nn.Sequential(nn.Linear(16, 8)))
    quantize_(module, IntxWeightOnlyConfig(torch.int8, PerAxis(0)))
    return Example(module, (data.tensor("x", 3, 16),), fill=False)


class PerTokenLinear(nn.Module):
    """A linear layer over codes, whose input gets a scale and a zero point for each of its rows.

    Parameters
    ----------
    codes
        Weights, int8, shape (features, inputs).
    scales
        float32: of each row of `codes` if one-dimensional, else of each group of a row, shape (features, groups).
    """

    codes: torch.Tensor
    scales: torch.Tensor

    def __init__(self, codes: torch.Tensor, scales: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        zeros = torch.zeros(len(codes), dtype=torch.int64) if scales.dim() == 1 else torch.zeros_like(scales)
        self.register_buffer("zero_points", zeros)
        self.bias = nn.Parameter(torch.zeros(len(codes)))

    def weight(self) -> torch.Tensor:
        of, stored = (self.codes, self.scales, self.zero_points), torch.int8
        if self.scales.dim() == 1:
            return quantized.dequantize_per_channel(*of, 0, -127, 127, stored)  # type: ignore[no-any-return]
        return quantized.dequantize_per_channel_group(*of, -8, 7, stored, GROUP, torch.float32)  # type: ignore[no-any-return]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, zero_point = quantized.choose_qparams_per_token_asymmetric(x, torch.int8)
        codes = quantized.quantize_per_token(x, scale, zero_point, -128, 127, torch.int8)
        x = quantized.dequantize_per_token(codes, scale, zero_point, -128, 127, torch.int8, torch.float32)
        return nn.functional.linear(x, self.weight(), self.bias)


@case(
    guards="each row of the input keeps the scale that was chosen for it",
    backends=("xnnpack-fp32",),
)
def per_token_linear(data: Data) -> Example:
    codes = data.tensor("codes", 8, 16, bits=0, limit=10).to(torch.int8)
    scales = data.tensor("scales", 8, bits=7, limit=8).abs() + 2**-7
    return Example(PerTokenLinear(codes, scales), (data.tensor("x", 3, 16),))


@case(
    guards="four-bit codes in groups, written out in the model, keep the scale of their group",
    backends=("xnnpack-fp32",),
)
def grouped_codes(data: Data) -> Example:
    codes = data.tensor("codes", 8, 2 * GROUP, bits=0, limit=7).to(torch.int8)
    scales = data.tensor("scales", 8, 2, bits=7, limit=8).abs() + 2**-4
    return Example(PerTokenLinear(codes, scales), (data.tensor("x", 3, 2 * GROUP),))
