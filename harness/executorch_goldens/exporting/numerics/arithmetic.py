"""Arithmetic of targets, operator by operator: eager's, or a rounding of their own; with sources."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._decomp import decomposition_table

from executorch_goldens.zoo.targets import TOSA, XNNPACK

#: By name of an operator: how far lowering computes it off at an input.
Approximations = Mapping[str, Callable[[torch.Tensor], torch.Tensor]]

#: Operators whose result needs no rounding: they choose, move or compare.
EXACT = frozenset(
    """
    view _unsafe_view view_as view_copy reshape permute permute_copy transpose t squeeze squeeze_ unsqueeze
    unsqueeze_ expand expand_copy slice slice_copy select split split_with_sizes unbind narrow as_strided
    alias detach clone contiguous cat stack index index_select gather masked_fill where copy copy_
    lift_fresh_copy repeat flip roll constant_pad_nd pixel_shuffle pixel_unshuffle unfold slice_scatter
    select_scatter scatter index_put index_put_ embedding reflection_pad1d reflection_pad2d replication_pad1d
    replication_pad2d tril triu diagonal fill fill_ zero_ relu relu_ clamp clamp_min clamp_max hardtanh
    hardtanh_ max min amax amin maximum minimum max_pool2d max_pool2d_with_indices max_pool3d_with_indices abs
    neg sign topk sort upsample_nearest2d floor ceil round trunc full_like zeros_like ones_like new_full
    new_zeros adaptive_max_pool2d adaptive_max_pool3d
    """.split()  # noqa: SIM905 - a word each line would hide what they have in common
)
#: Units in the last place by which a kernel of an operator that is not exact may be off. Sums, products and
#: differences are correctly rounded (IEEE 754); others are approximated. Of these the C library's float functions are
#: within a unit or two (glibc manual, "Known Maximum Errors in Math Functions"), torch's vectors of them within one
#: (SLEEF, `u10`), and another library's beside them is within four of either. What is narrower than float32 torch
#: computes in that and rounds once, and so do the runtime's kernels, but for some sums (`narrow`): to neighbours at
#: most, a unit apart.
ARITHMETIC = frozenset({"add", "sub", "mul", "rsub", "add_", "sub_", "mul_", "_to_copy"})
APPROXIMATED = 4.0

#: Operators of Core ATen that round more than once; those that are not in Core ATen are decomposed in any case.
COMPOSED = frozenset(
    (
        "_softmax",
        "_log_softmax",
        "native_layer_norm",
        "native_group_norm",
        "var",
        "gelu",
        "elu",
        "addmm",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training",
    )
)


def _terms_of_convolution(made: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *others: Any) -> int:
    transposed = bool(others[4])
    return weight.numel() // max(1, weight.shape[1 if transposed else 0])


def _terms_of_reduction(made: torch.Tensor, x: torch.Tensor, *others: Any) -> int:
    return x.numel() // max(1, made.numel())


def _terms_of_pool(made: torch.Tensor, x: torch.Tensor, kernel: Sequence[int], *others: Any) -> int:
    return math.prod(kernel) if len(kernel) > 1 else kernel[0] ** 2


def _terms_of_product(made: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> int:
    return one.shape[-1]


#: Sums: how many terms each element of the result has. Each partial sum is rounded, in whatever order they are added.
SUMS: Mapping[str, Callable[..., int]] = {
    "mm": _terms_of_product,
    "bmm": _terms_of_product,
    "convolution": _terms_of_convolution,
    "sum": _terms_of_reduction,
    "mean": _terms_of_reduction,
    "cumsum": lambda made, x, *others: x.numel(),
    "avg_pool2d": _terms_of_pool,
    "_adaptive_avg_pool2d": _terms_of_reduction,
    "upsample_bilinear2d": lambda made, *others: 4,
}

#: Sums over dimensions, of so many terms or more, whose rounding is measured as well: on numbers of a coarse grid most
#: partial sums round the same way, and the error grows with the number of terms, not with its root.
REDUCTIONS = frozenset({"sum", "mean"})
MANY = 1024

#: Sums of float8 in TOSA among those, with what torch adds to them: terms are added up in float16, and the sum is
#: rounded once (TOSA 1.0: `acc_type` of the convolutions and AVG_POOL2D, the result of MATMUL).
SUMS_OF_FLOAT8: Mapping[str, Callable[..., int]] = {
    **{name: SUMS[name] for name in ("mm", "bmm", "convolution", "avg_pool2d", "_adaptive_avg_pool2d")},
    "addmm": lambda made, added, one, other: one.shape[-1] + 1,
}

#: How far a value may be from eager's before it is rounded to a code, in codes. Both backends multiply by a scale of
#: 32 bits and round once (TOSA 1.0, RESCALE; XNNPACK's requantization): what is near a tie may go the other way.
CODES = 1.0 / 16.0
#: The same for int16: TOSA's RESCALE of a 48-bit accumulator multiplies by 16 bits, which is half a code at full range,
#: and its tables are interpolated between 513 points.
INT16_CODES = 1.0
#: The same where scales are chosen from the values as they come: XNNPACK chooses them by a rule of its own.
DYNAMIC_CODES = 0.5

#: Units in the last place, at most, by which XNNPACK's exp of float16 may be off: XNNPACK's tests allow so many, and
#: ExecuTorch's as well (backends/xnnpack/test/ops/test_exp.py, `calculate_fp16_exp_tolerance`).
EXP_OF_FLOAT16 = 6.0

#: Operators that lowering computes by polynomials: how far these are off at an input, by backend. TOSA's for the arc
#: sine are off by up to 1.3e-3 between a half and one, those for the arc tangent by 1.3e-4 (measured on each release);
#: for expm1 it takes four terms of the series within 0.35 of zero (DecomposeExpm1Pass), and so leaves out the fifth.
APPROXIMATIONS: Mapping[str, Approximations] = {
    TOSA: {
        "asin": lambda x: torch.full_like(x, 1.3e-3),
        "acos": lambda x: torch.full_like(x, 1.3e-3),
        "atan": lambda x: torch.full_like(x, 1.3e-4),
        "expm1": lambda x: torch.where(x.abs() <= 0.35, x.abs() ** 5 / 110, 0.0),
    },
    XNNPACK: {
        "exp": lambda x: (
            x.exp() * (EXP_OF_FLOAT16 * torch.finfo(x.dtype).eps)
            if x.dtype is torch.float16
            else torch.zeros_like(x)
        ),
    },
}

#: Operators that targets compute in steps, which round each: as XNNPACK's and TOSA's lowering write them. What they are
#: given is floating (`floating`).
FORMULAS: Mapping[str, Callable[..., torch.Tensor]] = {
    "expm1": lambda x: x.exp() - 1.0,
    "log1p": lambda x: (x + 1.0).log(),
    "sinh": lambda x: (x.exp() - (-x).exp()) * 0.5,
    "cosh": lambda x: (x.exp() + (-x).exp()) * 0.5,
    "asinh": lambda x: (x + (x * x + 1.0).sqrt()).log(),
    "acosh": lambda x: (x + (x * x - 1.0).sqrt()).log(),
    "atanh": lambda x: ((1.0 + x) / (1.0 - x)).log() * 0.5,
}


def floating(values: torch.Tensor) -> torch.Tensor:
    """Return `values` as eager promotes them for an operator that gives floating numbers.

    Booleans cannot be negated, and integers of eight bits wrap around where they are multiplied.

    >>> floating(torch.tensor([True, False]))
    tensor([1., 0.])
    """
    if values.is_floating_point() or values.is_complex():
        return values
    return values.to(torch.get_default_dtype())


@functools.cache
def kind_of(func: Any) -> str:
    """Return how the result of an operator comes about."""
    name = func.overloadpacket.__name__
    if name in EXACT or name.startswith("dequantize_"):
        return "exact"
    if name.startswith("quantize_"):
        return "quantize"
    if name in SUMS:
        return "sum"
    if name in FORMULAS:
        return "formula"
    if func._can_decompose():
        # Only called by a decomposition: torch takes it apart elsewhere before a mode sees it.
        return "composite"
    in_steps = torch.Tag.core not in func.tags or name in COMPOSED
    return "decomposed" if in_steps and func in decomposition_table else "approximated"


def rows(x: torch.Tensor, dims: int | Sequence[int] | None) -> torch.Tensor:
    """Return the terms of a reduction along the first dimension."""
    places = [dims] if isinstance(dims, int) else [*(dims or range(x.dim()))]
    return x.movedim(places, [*range(len(places))]).flatten(0, len(places) - 1)


def error_in_order(name: str, made: torch.Tensor, x: torch.Tensor, *others: Any) -> torch.Tensor:
    """Return how far one of `REDUCTIONS` is off where float32 adds its terms one after the other, as TOSA's model does.

    Parameters
    ----------
    made
        The result, for its shape.
    x
        The terms: floats of any shape.
    others
        The dimensions, if not all, and whether they stay.
    """
    terms = rows(x.detach().float(), others[0] if others else None).numpy()
    total = np.add.accumulate(terms, axis=0, dtype=np.float32)[-1]
    off = np.abs(total - terms.sum(axis=0, dtype=np.float64)) / (len(terms) if name == "mean" else 1)
    return torch.tensor(off, dtype=torch.float32).reshape(made.shape)


def step_of_sum(name: str, terms: Sequence[Any], number: int) -> float:
    """Return the largest power of two that all partial sums of one of `SUMS_OF_FLOAT8` are multiples of; 0 for none.

    Parameters
    ----------
    terms
        The operator's arguments.
    number
        Number of terms.
    """
    steps = [step_of(x) for x in terms if isinstance(x, torch.Tensor)]
    if name.endswith("avg_pool2d"):
        return steps[0] / number if number & (number - 1) == 0 else 0.0
    one, other, *added = steps if name != "addmm" else (*steps[1:], steps[0])
    return min(one * other, *added, math.inf)


def step_of(values: torch.Tensor) -> float:
    """Return the largest power of two that all of `values`, float32, are multiples of.

    >>> step_of(torch.tensor([0.75, -3.0, 0.0]))
    0.25
    """
    mantissas, exponents = np.frexp(np.abs(values.detach().numpy().astype(np.float64)))
    digits = (mantissas * 2.0**53).astype(np.int64)
    steps = np.ldexp((digits & -digits).astype(np.float64), exponents - 53)
    return float(steps[steps > 0].min(initial=np.inf))
