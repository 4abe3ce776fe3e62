"""Eager evaluation in dtypes for which torch has few kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from executorch_goldens.exporting.blame import handed_on

#: The dtypes of 8 bits that targets have (TOSA 1.0, extensions EXT-FP8E4M3 and EXT-FP8E5M2).
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


class Float8InFloat32(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes operators without a float8 kernel in float32, and rounds every result to its dtype.

    torch moves and casts float8, and little more. Its kernels for other narrow floats compute in float32 as well, and
    round once for each operator.
    """

    @handed_on
    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = (tuple(args), dict(kwargs or {}))
        try:
            return func(*given[0], **given[1])
        except NotImplementedError:
            # An operator that writes to what it is given would leave its result in a copy.
            if func._schema.is_mutable or not any(map(is_float8, pytree.tree_leaves(given))):  # type: ignore[attr-defined]
                raise
        wide = pytree.tree_map_only(torch.Tensor, lambda x: x.float() if is_float8(x) else x, given)
        shapes = pytree.tree_map_only(torch.Tensor, lambda x: x.to("meta"), given)
        computed, treespec = pytree.tree_flatten(func(*wide[0], **wide[1]))
        declared = pytree.tree_leaves(func(*shapes[0], **shapes[1]))
        return pytree.tree_unflatten(
            [
                made.to(like.dtype) if isinstance(like, torch.Tensor) else made
                for made, like in zip(computed, declared, strict=True)
            ],
            treespec,
        )


def is_float8(value: object) -> bool:
    """Return whether `value` is a tensor of one of `FLOAT8`."""
    return isinstance(value, torch.Tensor) and value.dtype in FLOAT8
