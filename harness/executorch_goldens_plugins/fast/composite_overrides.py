"""Make the kernels that replace composite operators once per operator.

``run_decompositions`` replaces twenty-one Python kernels of each of some six hundred composite operators, twice,
and takes them out again: 6% of an export of six drawn on 1.4.1, 19% of a small one. They follow from the operator
and the kernels that it has, and hold no state: they are made once, and again when an operator's kernels change.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    torch.export.exported_program:_override_composite_implicit_decomp
        4422dc79d0792af7 1.1.0 1.2.0 1.3.1 1.4.1  e96e2a4f053f0684 1.5.1
    torch._export.utils:_get_decomp_for_cia  3ae30c72c7d7bce2 1.1.0 1.2.0 1.3.1 1.4.1  68fc58bf22eb1ea0 1.5.1
    torch._ops:OperatorBase.py_impl  0a5b36da652d01e2 1.1.0  8173bd205b783783 1.2.0 1.3.1 1.4.1 1.5.1
    torch._subclasses.fake_impls:register_op_impl
        5041739b7c362762 1.1.0  405e93300718a185 1.2.0 1.3.1 1.4.1  6c0b0bcd047f8a6f 1.5.1
    torch._subclasses.fake_impls:_deregister_op_impl
        9b2d27808507abca 1.1.0  b25dfd97c983a622 1.2.0 1.3.1 1.4.1  1c86a2de2c238195 1.5.1
    torch._higher_order_ops.utils:autograd_not_implemented  5cd89d9f69d7a773 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    """
)


@dataclass(frozen=True)
class _Override:
    """State of an operator's Python kernels while a program is decomposed.

    Attributes
    ----------
    before
        The kernels that the rest was made from.
    during
        The kernels meanwhile; what is under CompositeImplicitAutograd is put in each time.
    fake
        The operator's rule for fake tensors meanwhile.
    """

    before: dict[Any, Any]
    during: dict[Any, Any]
    fake: Callable[..., Any]


def _install(release: str) -> None:
    import torch
    from torch.export import exported_program

    room: Any = exported_program
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    overrides: dict[Any, _Override] = {}

    def run_composite(mode: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        original = kwargs.pop("original_callable")
        with mode:
            return original(*args, **kwargs)

    def prepare(op: Any) -> _Override:
        before = op.py_kernels.copy()
        during = op.py_kernels.copy()
        refuse = room.autograd_not_implemented(op, deferred_error=True)
        for key in room._AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE:
            during.setdefault(key, refuse)
        original = room._get_decomp_for_cia(op)
        during.pop(composite, None)
        during[composite] = None
        for key in room._BACKEND_KEYS_TO_OVERRIDE:
            during.setdefault(key, original)
        return _Override(before, during, functools.partial(run_composite, original_callable=original))

    @contextlib.contextmanager
    def override_composite_implicit_decomp(
        decompositions: Mapping[Any, Callable[..., Any]],
    ) -> Iterator[None]:
        befores = {}
        for op, decomposition in decompositions.items():
            override = overrides.get(op)
            if override is None or override.before != op.py_kernels:
                override = overrides[op] = prepare(op)
            befores[op] = override.before
            op.py_kernels.clear()
            op.py_kernels.update(override.during)
            op.py_kernels[composite] = decomposition
            op._dispatch_cache.clear()
            if not room._is_op_registered_to_fake_rule(op):
                room.register_op_impl(op)(override.fake)
        try:
            yield
        finally:
            for op, before in befores.items():
                op.py_kernels.clear()
                op.py_kernels.update(before)
                op._dispatch_cache.clear()
                room._deregister_op_impl(op)

    room._override_composite_implicit_decomp = override_composite_implicit_decomp


SHORTCUT = Shortcut("composite-overrides", None, "composite kernels are made once", FITS, _install)
