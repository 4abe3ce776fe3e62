"""Kernels that replace composite operators are those of the release, and are taken out again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from executorch_goldens_plugins.fast import composite_overrides

Overriding = Callable[[Mapping[Any, Any]], contextlib.AbstractContextManager[None]]


@pytest.fixture
def overriding(release: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Overriding, Overriding]:
    """The context manager that replaces composite operators' kernels: the release's, and the shortcut's."""
    from torch.export import exported_program

    upstream = exported_program._override_composite_implicit_decomp
    monkeypatch.setattr(exported_program, "_override_composite_implicit_decomp", upstream)
    composite_overrides.SHORTCUT.install(release)
    return upstream, exported_program._override_composite_implicit_decomp


def kernels(operators: Mapping[Any, Any]) -> dict[str, list[tuple[str, str]]]:
    """Return the Python kernels of `operators` in order, by their maker: each call makes other functions."""
    from torch._subclasses.fake_impls import op_implementations_dict

    return {
        op.name(): [
            *((str(key), described(kernel)) for key, kernel in op.py_kernels.items()),
            ("fake", str(op in op_implementations_dict)),
        ]
        for op in operators
    }


def described(kernel: Any) -> str:
    function = getattr(kernel, "func", kernel)
    return f"{function.__qualname__} {getattr(kernel, 'keywords', None)}"


def test_composite_kernels_are_those_of_the_release_and_are_taken_out_again(
    overriding: tuple[Overriding, Overriding],
) -> None:
    from torch._export.utils import _collect_all_valid_cia_ops

    upstream, shortened = overriding
    decompositions = dict.fromkeys(_collect_all_valid_cia_ops(), kernels)
    assert len(decompositions) > 300
    with upstream(decompositions):
        pass
    # From its first time on, the release has no rules for fake tensors of composite operators.
    before = kernels(decompositions)
    with upstream(decompositions):
        during = kernels(decompositions)
    for _ in range(2):
        with shortened(decompositions):
            assert kernels(decompositions) == during != before
        assert kernels(decompositions) == before


def test_an_operators_own_kernel_that_came_since_is_not_replaced(
    overriding: tuple[Overriding, Overriding],
) -> None:
    _, shortened = overriding
    op, key = torch.ops.aten.linear.default, torch._C.DispatchKey.CPU
    with shortened({op: kernels}):
        first = op.py_kernels[key]
    op.py_impl(key)(described)
    try:
        with shortened({op: kernels}):
            assert op.py_kernels[key] is described is not first
        assert op.py_kernels == {key: described}
    finally:
        del op.py_kernels[key]
        op._dispatch_cache.clear()
