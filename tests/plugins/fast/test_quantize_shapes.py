"""Quantized fake tensors are computed once for each shape."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from executorch_goldens_plugins.fast import quantize_shapes


def test_quantized_tensors_are_computed_once_for_each_shape(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    ran = []
    dispatch = FakeTensorMode._dispatch_impl

    def counting(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        ran.append(func.name())
        return dispatch(self, func, types, args, kwargs)

    monkeypatch.setattr(FakeTensorMode, "_validate_cache_key", FakeTensorMode._validate_cache_key)
    monkeypatch.setattr(FakeTensorMode, "_dispatch_impl", counting)
    quantize_shapes.SHORTCUT.install(release)
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default

    def quantized(mode: FakeTensorMode, x: torch.Tensor, dtype: torch.dtype = torch.int8) -> torch.Tensor:
        with mode:
            made: torch.Tensor = quantize(mode.from_tensor(x), 0.5, 0, -128, 127, dtype)
        return made

    x = torch.zeros(61, 3, 5, 7)
    first = quantized(FakeTensorMode(), x)
    assert ran.count(quantize.name()) == 1
    again = quantized(FakeTensorMode(), x)
    assert ran.count(quantize.name()) == 1
    assert (again.dtype, again.shape, again.stride()) == (first.dtype, first.shape, first.stride())
    assert again is not first
    last = quantized(FakeTensorMode(), x.to(memory_format=torch.channels_last))
    assert last.stride() == (105, 1, 21, 3) != first.stride()
    assert quantized(FakeTensorMode(), x, torch.uint8).dtype is torch.uint8
    # What it refuses, it refuses each time.
    for _ in range(2):
        with pytest.raises(AssertionError, match="float32"):
            quantized(FakeTensorMode(), x.to(torch.int32))
