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

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = {
    "torch.export.exported_program:_override_composite_implicit_decomp": {
        "4422dc79d0792af728dd8eacf0a2fadcf00195c8802ceca15632b737d9d5c9bd": "1.1.0 1.2.0 1.3.1 1.4.1",
        "e96e2a4f053f0684e521ee56810b19317dc4e3bef86a37e8271e702edea025e7": "1.5.1",
    },
    "torch._export.utils:_get_decomp_for_cia": {
        "3ae30c72c7d7bce2e64a2589eac8d22502ccb6cdc120cc4d35a8150f726a5eb9": "1.1.0 1.2.0 1.3.1 1.4.1",
        "68fc58bf22eb1ea06a0d2f9840bc43d0f5065a3a3bc14d0a047b3d90fbe53154": "1.5.1",
    },
    "torch._ops:OperatorBase.py_impl": {
        "0a5b36da652d01e2a65f5cf53a51e7f5936768f921079822bf7ed8420b36c982": "1.1.0",
        "8173bd205b783783cda935e5b6590b730162bf3224538ae039576a75fc40ec0b": "1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch._subclasses.fake_impls:register_op_impl": {
        "5041739b7c362762341612e6cfaaf4c61c45d5969dc46258a47d9c78fa947971": "1.1.0",
        "405e93300718a185c5987656eb2035974eafdf0acd5a4bc4ea26c9a6847c36a0": "1.2.0 1.3.1 1.4.1",
        "6c0b0bcd047f8a6fb51a7b8d2d0e0e4a53e609e1f745219c3d788e3892046497": "1.5.1",
    },
    "torch._subclasses.fake_impls:_deregister_op_impl": {
        "9b2d27808507abcaf99fa38d80e3b5a1817374e8eb30260c2b335dc033bf04f6": "1.1.0",
        "b25dfd97c983a622274368e3179ad8d5d041e1f04894656ca36719cbdabc9233": "1.2.0 1.3.1 1.4.1",
        "1c86a2de2c23819549122622a4c37961a96d72275f4aed790b887095456ca68c": "1.5.1",
    },
    "torch._higher_order_ops.utils:autograd_not_implemented": {
        "5cd89d9f69d7a7735b1fa3f1cc13cfcd252a7fef173a3cd75348a90661a4b32a": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
}


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


def _install() -> None:
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


SHORTCUT = Shortcut(
    "composite-overrides",
    "kernels that replace composite operators are made once",
    by_release(FITS),
    _install,
)
