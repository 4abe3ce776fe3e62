"""Sums of narrow types as the runtime's kernels make them: to the last bit, and what is wrong is still beyond them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from executorch.exir import to_edge
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example
from executorch_goldens.artifact import Tensor
from executorch_goldens.exporting.numerics import narrow, rounding
from executorch_goldens.exporting.numerics.rounding import moved
from executorch_goldens.exporting.program import Request
from executorch_goldens.exporting.recipe import stages
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.judging import rightness
from executorch_goldens.numerics.tolerances import allowed
from executorch_goldens.zoo.registry import Case

CONVOLVED = ((2, 2), (1, 1), (1, 1))


class Of(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def in_runtime(model: nn.Module, *inputs: torch.Tensor) -> torch.Tensor:
    pte = to_edge(torch.export.export(model, inputs)).to_executorch().buffer
    made: torch.Tensor = _load_for_executorch_from_buffer(pte).run_method("forward", inputs)[0]
    return made


#: By operator what calls it, its inputs, and the same by the kernel's account.
SUMS: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]], Callable[..., torch.Tensor]]] = {
    "addmm": (torch.addmm, [(8,), (4, 300), (300, 8)], narrow.KERNELS["addmm"]),
    "convolution": (
        lambda x, w, b: functional.conv2d(x, w, b, *CONVOLVED, groups=2),
        [(1, 8, 9, 9), (6, 4, 3, 3), (6,)],
        lambda x, w, b: narrow.KERNELS["convolution"](x, w, b, *CONVOLVED, False, (0, 0), 2),
    ),
    "transposed": (
        lambda x, w, b: functional.conv_transpose2d(x, w, b, 2, 1, groups=2),
        [(1, 8, 5, 5), (8, 3, 4, 4), (6,)],
        lambda x, w, b: narrow.KERNELS["convolution"](x, w, b, *CONVOLVED, True, (0, 0), 2),
    ),
    "cumsum": (lambda x: x.cumsum(1), [(4, 300)], lambda x: narrow.KERNELS["cumsum"](x, 1)),
    "var": (lambda x: x.var(1), [(4, 300)], lambda x: narrow.KERNELS["var"](x, [1], correction=1)),
    "prod": (
        lambda x: x.clamp(0.875, 1.125).prod(1),
        [(4, 300)],
        lambda x: narrow.KERNELS["prod"](x.clamp(0.875, 1.125), 1),
    ),
    "avg_pool2d": (
        lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        [(1, 2, 8, 10)],
        lambda x: narrow.KERNELS["avg_pool2d"](x, [3, 3], [2, 2], [1, 1], True, False),
    ),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_to_the_last_bit_what_the_kernel_gives(name: str, dtype: torch.dtype) -> None:
    function, shapes, kernel = SUMS[name]
    inputs = [normal(*shape, dtype=dtype) for shape in shapes]
    given = in_runtime(Of(function), *inputs)
    assert torch.equal(given, kernel(*inputs))
    assert not torch.equal(given, function(*inputs)), "eager adds up in float32"


def test_each_operator_whose_error_grows_is_known_to_add_up_in_a_narrow_type() -> None:
    # The layer norm is a defect, and old grid samplers find their places in the narrow type: no tolerance allows them.
    for errors in narrow.measurements().values():
        grow = {name for name, each in errors.items() if each[-1] > narrow.ROUNDED_ONCE}
        assert grow - narrow.KERNELS.keys() <= {"native_layer_norm", "grid_sampler_2d"}


class Scaled(nn.Module):
    """A linear layer of bfloat16 with a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(normal(16, 512)), nn.Parameter(normal(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weight, self.bias)


def deviation(right: nn.Module, x: torch.Tensor, given: torch.Tensor, kernels: frozenset[str]) -> Deviation:
    """Return how far `given` is from what a model gives, with the tolerance of a program that has `kernels`."""
    expected, actual = (Tensor.from_array(each.detach().float().numpy()) for each in (right(x), given))
    found = moved(right, [[x]], (0.0,), np.random.default_rng(0), {}, kernels)
    (tolerance,) = allowed([expected.array()], [found.spreads[0].array()], 0.0, 1e-5)
    return Deviation(expected, actual, tolerance.reach)


@torch.no_grad()
def test_a_narrow_linear_layer_is_right_by_what_its_kernel_does_and_one_with_a_wrong_bias_is_not() -> None:
    model, x = Scaled().eval(), normal(4, 512)
    edge = to_edge(torch.export.export(model, (x,)))
    kernels = narrow.outside(edge.exported_program().graph.nodes)
    assert kernels == {"addmm"}
    given = in_runtime(model, x)
    assert deviation(model, x, given, frozenset()).exceeds_tolerance(), "rounded once, it would be corrupt"
    assert not deviation(model, x, given, kernels).exceeds_tolerance()
    wrong = Scaled().eval()
    wrong.bias[3] += 8.0
    assert deviation(model, x, in_runtime(wrong, x), kernels).exceeds_tolerance()


def test_an_export_is_held_to_the_kernels_that_its_program_is_left_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    measure = rounding.moved

    def noting(*given: Any) -> rounding.Moved:
        seen.append(given[-1])
        return measure(*given)

    def build(data: Data) -> Example:
        module = data.fill(nn.Linear(512, 16)).bfloat16()
        return Example(module, (data.tensor("x", 4, 512).bfloat16(),), fill=False)

    case = Case("narrow-linear", "tests", "a narrow linear layer", build)
    monkeypatch.setattr(rounding, "moved", noting)
    *_, reached = stages(Request(case, Lowering.named("xnnpack-fp32")))
    made = reached.result
    assert dict.fromkeys(seen) == dict.fromkeys([frozenset(), frozenset({"addmm"})])
    assert not made.delegates
    assert any(sample.expected != sample.outputs for sample in made.samples)
    assert not list(rightness.wrongs(made))
