"""Sums of bfloat16 and float16 as the runtime's kernels add them up: in that type, one term after the other.

Which kernels do is measured on each release (``python -m lab narrow``). The others add up in float32 and round once.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import msgspec
import torch
from torch.fx import Node
from torch.nn import functional

from executorch_goldens.exporting import compat
from executorch_goldens.exporting.dialect import operator_of
from executorch_goldens.exporting.numerics.arithmetic import rows

NARROW = frozenset({torch.bfloat16, torch.float16})
#: Rounded once, a result is half a unit off, and a composed one less than a whole; in steps up to 1.6 (batch norm).
ROUNDED_ONCE = 2.0


def measurements() -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Return the errors of kernels, by release and operator: units in the last place, for few and for many terms."""
    table = resources.files(__package__).joinpath("narrow.toml").read_bytes()
    return msgspec.toml.decode(table, type=dict[str, dict[str, list[float]]])


@functools.cache
def accumulating() -> frozenset[str]:
    """Return the operators whose kernels add up in a narrow type; of a release that was not measured, the newest's."""
    measured = measurements()
    errors = measured.get(compat.installed_release(), [*measured.values()][-1])
    return frozenset(name for name, found in errors.items() if name in KERNELS and found[-1] > ROUNDED_ONCE)


def has_narrow(nodes: Iterable[Node]) -> bool:
    """Return whether some value is of a narrow type."""
    return any(getattr(node.meta.get("val"), "dtype", None) in NARROW for node in nodes)


def outside(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names of the operators among `nodes` that add up in a narrow type."""
    packets = (
        getattr(operator_of(node.target), "overloadpacket", None) for node in nodes if has_narrow([node])
    )
    return accumulating() & {getattr(packet, "__name__", "") for packet in packets}


def _added(terms: Iterable[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(operator.add, terms)


def _reduced(made: torch.Tensor, x: torch.Tensor, dims: Any, keepdim: bool) -> torch.Tensor:
    return made.reshape(x.sum(dims, keepdim=True).shape) if keepdim else made


def _sum(x: torch.Tensor, dims: Any = None, keepdim: bool = False, **_: Any) -> torch.Tensor:
    return _reduced(_added(rows(x, dims)), x, dims, keepdim)


def _mean(x: torch.Tensor, dims: Any = None, keepdim: bool = False, **_: Any) -> torch.Tensor:
    terms = rows(x, dims)
    return _reduced(_added(terms) / len(terms), x, dims, keepdim)


def _var(
    x: torch.Tensor,
    dims: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> torch.Tensor:
    terms = rows(x, dims)
    apart = terms - _added(terms) / len(terms)
    free = len(terms) - (int(unbiased) if correction is None else correction)
    return _reduced(_added(apart * apart) / free, x, dims, keepdim)


def _prod(x: torch.Tensor, dim: int | None = None, keepdim: bool = False, **_: Any) -> torch.Tensor:
    return _reduced(functools.reduce(operator.mul, rows(x, dim)), x, dim, keepdim)


def _cumsum(x: torch.Tensor, dim: int, **_: Any) -> torch.Tensor:
    return torch.stack([*itertools.accumulate(x.unbind(dim))], dim) if x.shape[dim] else x


def _mm(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return _added(one[..., k, None] * other[..., k, None, :] for k in range(one.shape[-1]))


def _addmm(
    added: torch.Tensor, one: torch.Tensor, other: torch.Tensor, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    return _mm(one, other) * alpha + added * beta


def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Add up the products of one channel of each group and one place of the kernel: one term of each element."""
    number = weight.shape[0] // groups if transposed else weight.shape[1]
    channels = x.reshape(len(x), groups, number, *x.shape[2:])
    places = range(math.prod(weight.shape[2:]))
    order: Iterable[tuple[int, int]] = itertools.product(range(number), places)
    if transposed:
        # It goes through the input place by place, and begins with the bias.
        order = ((channel, place) for place in reversed(places) for channel in range(number))
    added = None if bias is None else bias.reshape(-1, *[1] * (weight.dim() - 2))
    total = added if transposed else None
    parts = weight.reshape(groups, number, *weight.shape[1:]) if transposed else weight[:, :, None]
    for channel, place in order:
        own = parts[:, channel]
        one = torch.zeros_like(own)
        one.flatten(2)[..., place] = own.flatten(2)[..., place]
        term = torch.ops.aten.convolution(
            channels[:, :, channel], one, None, stride, padding, dilation, transposed, output_padding, groups
        )
        total = term if total is None else total + term
    assert total is not None
    return total if transposed or added is None else total + added


def _avg_pool2d(
    x: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> torch.Tensor:
    # One number is that of both dimensions, and no stride is the size of the kernel.
    height, width, down, across, top, left = (
        side for pair in (kernel, stride or kernel, padding) for side in (pair[0], pair[-1])
    )
    pool = functools.partial(
        functional.avg_pool2d,
        torch.ones_like(x, dtype=torch.float32),
        (height, width),
        (down, across),
        (top, left),
        ceil_mode,
        count_include_pad,
    )
    # How many ones are added up, over their average.
    divisor = pool(1) / pool(divisor_override)
    wide = functional.pad(x, (left, left + width * across, top, top + height * down))
    rows, columns = divisor.shape[-2:]
    windows = (
        wide[..., i : i + down * rows : down, j : j + across * columns : across]
        for i in range(height)
        for j in range(width)
    )
    return _added(windows) / divisor.to(x.dtype)


def _softmax(x: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / _sum(powers, dim, keepdim=True)


def _log_softmax(x: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    below = x - x.amax(dim, keepdim=True)
    return below - _sum(below.exp(), dim, keepdim=True).log()


#: Sums as a kernel that adds up in its own type gives them, to the last bit where it takes the terms in this order.
KERNELS: Mapping[str, Callable[..., torch.Tensor]] = {
    "mm": _mm,
    "bmm": _mm,
    "addmm": _addmm,
    "convolution": _convolution,
    "sum": _sum,
    "mean": _mean,
    "var": _var,
    "prod": _prod,
    "cumsum": _cumsum,
    "avg_pool2d": _avg_pool2d,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
}
