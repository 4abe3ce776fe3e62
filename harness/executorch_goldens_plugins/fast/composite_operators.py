"""Collect the composite operators again only when there are new ones.

Every decomposition looks up the operators of the C++ dispatcher in each of some forty namespaces, and checks each
operator: 4 ms, six times in an export. The result follows from the composite operators that the dispatcher has, from
the operators that Python knows, and from the Python kernels of these. All three are compared each time.
"""

from __future__ import annotations

import functools
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    torch._export.utils:_materialize_cpp_cia_ops  6a75f025254b4a0a 1.1.0  51472f6b4e2c3782 1.2.0 1.3.1 1.4.1 1.5.1
    torch._export.utils:_collect_all_valid_cia_ops  394f86cd42296432 1.1.0  1d09a99ea79bd377 1.2.0 1.3.1 1.4.1 1.5.1
    torch._export.utils:_collect_all_valid_cia_ops_for_namespace
        7fb5488e38b61d73 1.1.0 1.2.0 1.3.1  c26d5cd619830773 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    import torch
    from torch._export import utils
    from torch.export import decomp_utils, exported_program

    materialize, collect = utils._materialize_cpp_cia_ops, utils._collect_all_valid_cia_ops
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    known: list[str] = []
    collecting = False
    held: list[Any] = []
    last: tuple[Any, ...] = ()
    found: set[Any] = set()

    def materialize_new() -> None:
        registered = known if collecting else composite_operators()
        if registered != known:
            materialize()
            known[:] = registered

    def composite_operators() -> list[str]:
        return torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")

    def packets() -> list[Any]:
        # Those of ATen upstream collects once.
        spaces = [getattr(torch.ops, name) for name in torch.ops._dir if name != "aten"]
        return [
            getattr(space, name)
            for space in spaces
            if isinstance(space, torch._ops._OpNamespace)
            for name in space
        ]

    def state() -> tuple[Any, ...]:
        """Return what the collected operators follow from."""
        overloads = [packet._overload_names for packet in packets()]
        return known.copy(), overloads, [composite in op.py_kernels for op in held]

    @functools.wraps(collect)
    def collect_all() -> set[Any]:
        nonlocal collecting, last, found
        materialize_new()
        if last == state():
            return found.copy()
        collecting = True
        try:
            found = collect()
        finally:
            collecting = False
        held[:] = [getattr(packet, name) for packet in packets() for name in packet.overloads()]
        last = state()
        return found.copy()

    utils._materialize_cpp_cia_ops = materialize_new
    modules: tuple[Any, ...] = (utils, exported_program, decomp_utils)
    for module in modules:
        module._collect_all_valid_cia_ops = collect_all


SHORTCUT = Shortcut("composite-operators", None, "composite operators are collected once", FITS, _install)
