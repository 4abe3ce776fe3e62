"""Observers and quantizers that choose wrong scales, zero points and ranges.

The quantized eager graph has the same ones, so that no output is wrong by it: what sees them is the float model.
"""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

OBSERVER = "torchao.quantization.pt2e.observer"
PARAMETERS = f"{OBSERVER}:UniformQuantizationObserverBase._calculate_qparams"
CHANNELS = f"{OBSERVER}:PerChannelMinMaxObserver._forward"
HISTOGRAM = f"{OBSERVER}:HistogramObserver._non_linear_param_search"
ARM = "executorch.backends.arm.quantizer.arm_quantizer:get_symmetric_quantization_config"

LOWEST = "min_val_neg = torch.min(min_val, torch.zeros_like(min_val))"
HIGHEST = "max_val_pos = torch.max(max_val, torch.zeros_like(max_val))"
AFFINE = "scale = (max_val_pos - min_val_neg) / float(quant_max - quant_min)"
ZERO = "zero_point = quant_min - torch.round(min_val_neg / scale).to(torch.int)"

MUTANTS = (
    Mutant(
        name="scales-a-sixteenth",
        kind="scale of an observer",
        does="observers give a sixteenth of the scale: all but the smallest values are at the ends of the codes",
        cell="tosa-int/linear",
        verdict="imprecise",
        place="quantized",
        edits=(
            Edit(PARAMETERS, "        return scale, zero_point\n", "        return scale / 16, zero_point\n"),
        ),
    ),
    Mutant(
        name="xnnpack-scales-a-sixteenth",
        kind="scale of an observer",
        does="the same for XNNPACK, in a deep network",
        cell="xnnpack-int8/mobilenet-v2",
        verdict="imprecise",
        place="quantized",
        edits=(
            Edit(PARAMETERS, "        return scale, zero_point\n", "        return scale / 16, zero_point\n"),
        ),
    ),
    Mutant(
        name="scales-doubled",
        kind="scale of an observer",
        does="observers give twice the scale: half of the codes are for nothing",
        cell="tosa-int/ds-cnn",
        verdict="changed",
        place="quantized",
        edits=(Edit(PARAMETERS, AFFINE, f"{AFFINE} * 2"),),
    ),
    Mutant(
        name="scales-of-reversed-channels",
        kind="scale of an observer",
        does="the scales of a weight are those of its channels in reverse order",
        cell="xnnpack-int8/linear",
        verdict="changed",
        place="quantized",
        edits=(
            Edit(
                CHANNELS,
                "            min_val, max_val = torch.aminmax(y, dim=1)\n",
                "            min_val, max_val = (each.flip(0) for each in torch.aminmax(y, dim=1))\n",
            ),
        ),
    ),
    Mutant(
        name="zero-point-off-by-sixteen",
        kind="zero point of an observer",
        does="the zero point of activations is 16 codes too high: the largest values are cut off",
        cell="xnnpack-int8/conv-bn-relu",
        verdict="changed",
        place="quantized",
        edits=(Edit(PARAMETERS, ZERO, f"{ZERO} + 16"),),
    ),
    Mutant(
        name="zero-point-without-minimum",
        kind="zero point of an observer",
        does="the zero point of activations is the smallest code, whatever the smallest value is",
        cell="tosa-int/mobilenet-v2",
        verdict="imprecise",
        place="quantized",
        edits=(
            Edit(PARAMETERS, ZERO, "zero_point = quant_min + torch.zeros_like(zero_point, dtype=torch.int)"),
        ),
    ),
    Mutant(
        name="observer-of-one-side",
        kind="range of an observer",
        does="observers see no negative value",
        cell="xnnpack-int8/ds-cnn",
        verdict="imprecise",
        place="quantized",
        edits=(Edit(PARAMETERS, LOWEST, "min_val_neg = torch.zeros_like(min_val)"),),
    ),
    Mutant(
        name="observer-of-swapped-ends",
        kind="range of an observer",
        does="observers take the negative of the largest value for the smallest, and the other way round",
        cell="tosa-int/conv-bn-relu",
        verdict="imprecise",
        place="quantized",
        edits=(
            Edit(PARAMETERS, LOWEST, "min_val_neg = torch.min(-max_val, torch.zeros_like(min_val))"),
            Edit(PARAMETERS, HIGHEST, "max_val_pos = torch.max(-min_val, torch.zeros_like(max_val))"),
        ),
    ),
    Mutant(
        name="observer-of-half-the-range",
        kind="range of an observer",
        does="observers cut off values above half of the largest",
        cell="xnnpack-int8/mobilenet-v2",
        verdict="imprecise",
        place="quantized",
        edits=(Edit(PARAMETERS, HIGHEST, f"{HIGHEST} / 2"),),
    ),
    Mutant(
        name="codes-of-four-bits",
        kind="range of an observer",
        does="observers spread values over 16 codes instead of 256",
        cell="tosa-int/linear",
        verdict="changed",
        place="quantized",
        edits=(
            Edit(
                PARAMETERS,
                "quant_min, quant_max = self.quant_min, self.quant_max",
                "quant_min, quant_max = self.quant_min // 16, self.quant_max // 16",
            ),
        ),
    ),
    Mutant(
        name="quantizer-narrows-activations",
        kind="range of an observer",
        does="Arm's quantizer gives activations the codes up to 63, not 127",
        cell="tosa-int/conv-bn-relu",
        verdict="changed",
        place="quantized",
        edits=(Edit(ARM, "        quant_max=act_qmax,\n", "        quant_max=act_qmax // 2,\n"),),
    ),
)
