"""Let a pass that interprets a graph take what an operator gave for the same fake tensors before.

A pass of either backend runs every operator of the graph on fake tensors, to know what comes out of it. Most operators
get the same as in the pass before, and running them is half of the time of a pass. torch's own cache compares the
properties of tensors each time, which takes as long as running some operators. Here a tensor's properties are read
once, and a result is the very object that a pass before got. Two nodes of a graph never share a result: the second of
the same operator with the same arguments takes the second result.

Properties decide for operators of `PURE` as long as no size is symbolic; otherwise, a tensor is the same when it is the
same object.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Hashable
from itertools import chain
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Functions that are replaced or relied on: the digests of their source, and the releases that have it.
FITS = by_release(
    """
    torch.fx.interpreter:Interpreter.run  bbb15df17486fd3e 1.1.0 1.2.0  0c95029c7cad41b3 1.3.1 1.4.1 1.5.1
    torch.fx.interpreter:Interpreter.call_function  54e0752b7f8c306f 1.1.0  fb396d3a46b3242c 1.2.0 1.3.1 1.4.1 1.5.1
    executorch.exir.pass_base:_ExportPassBase._fx  d21aacbb5c107fba 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch._subclasses.fake_tensor:extract_tensor_metadata
        63a9d204a477340d 1.1.0 1.2.0 1.3.1 1.4.1  273a11d7b54a94a8 1.5.1
    executorch.exir.pass_base:_ExportPassBase.call  689e39bb23b9834c 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    """
)

#: Namespaces of operators whose results for fake tensors follow from the properties of these alone. TOSA's follow from
#: the specification that is lowered for as well.
PURE = ("aten", "quantized_decomposed", "dim_order_ops")

#: Results that are remembered: some hundred graphs' of some hundred nodes.
MOST = 50_000


class UnknownArgumentError(Exception):
    """An argument by which a result cannot be remembered."""


class RememberedResults:
    """What operators gave for fake tensors.

    Attributes
    ----------
    found
        Each result with the arguments, by operator and arguments: these keep their tensors, whose identity is the key.
    """

    def __init__(self) -> None:
        self.found: dict[Hashable, list[tuple[Any, Any]]] = {}

    def take(self, key: Hashable, place: int) -> Any:
        """Return a result; None where there are not so many."""
        known = self.found.get(key, ())
        return known[place][0] if place < len(known) else None

    def put(self, key: Hashable, arguments: Any, result: Any) -> None:
        if len(self.found) >= MOST:
            self.found.clear()
        self.found.setdefault(key, []).append((result, arguments))


class Properties:
    """Properties of tensors, read once. A tensor is held with its own: its address could be reused."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Hashable]] = {}

    def look_up(self, value: Any) -> Hashable:
        """Return the properties of a static fake tensor."""
        from torch._subclasses.fake_tensor import extract_tensor_metadata

        known = self.known.get(id(value))
        if known is None:
            if len(self.known) >= MOST:
                self.known.clear()
            read = extract_tensor_metadata(value)
            fields = tuple(getattr(read, field.name) for field in dataclasses.fields(read))
            known = self.known[id(value)] = (value, (value.is_leaf, *fields))
        return known[1]


def is_static(value: Any, fake: Any) -> bool:
    """Return whether a value is a fake tensor without a value and without symbolic sizes."""
    return type(value) is fake and value.constant is None and not value._has_symbolic_sizes_strides


def key_of(value: Any, fake: type, plain: frozenset[type], tensor: Callable[[Any], Hashable]) -> Hashable:
    """Return the key of an argument; raise `UnknownArgumentError`.

    Parameters
    ----------
    fake
        The class of fake tensors.
    plain
        Types whose values are their own key.
    tensor
        Returns the key of a static fake tensor.
    """
    kind = type(value)
    if kind in plain:
        # With the type: 1, 1.0 and True are equal. So are 0.0 and -0.0.
        return kind, repr(value) if kind is float else value
    if is_static(value, fake):
        return kind, tensor(value)
    if isinstance(value, list | tuple):
        return tuple, tuple([key_of(each, fake, plain, tensor) for each in value])
    raise UnknownArgumentError


def _install(release: str) -> None:
    import torch
    from executorch.exir import pass_base
    from executorch.exir.dialects.edge._ops import EdgeOpOverload
    from torch._subclasses.fake_tensor import FakeTensor

    interpreter: Any = torch.fx.Interpreter
    tracing: Any = pass_base._ExportPassBase.ExportInterpreter
    run, call_function = interpreter.run, interpreter.call_function
    plain: frozenset[type] = frozenset(
        (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
    )
    results, properties = RememberedResults(), Properties()
    # Of each interpretation that is going on, how often each call was made.
    running: list[Counter[Hashable]] = []

    def is_plain(value: Any) -> bool:
        if isinstance(value, list | tuple):
            return bool(value) and all(map(is_plain, value))
        return is_static(value, FakeTensor)

    def overload_of(target: Any) -> Any:
        return target._op if isinstance(target, EdgeOpOverload) else target

    @functools.cache
    def is_functional(target: Any) -> bool:
        overload = overload_of(target)
        return (
            isinstance(overload, torch._ops.OpOverload)
            and not overload._schema.is_mutable
            and not any(each.alias_info is not None for each in overload._schema.arguments)
        )

    @functools.cache
    def is_pure(target: Any) -> bool:
        return overload_of(target).namespace in PURE

    def is_numbered(mode: Any) -> bool:
        return mode.shape_env is None or not mode.shape_env.var_to_range

    @functools.wraps(run)
    def run_and_count(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, tracing):
            return run(self, *args, **kwargs)
        # A nested graph is part of the same program.
        running.append(running[-1] if running else Counter())
        try:
            return run(self, *args, **kwargs)
        finally:
            running.pop()

    @functools.wraps(call_function)
    def call_or_take(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        if not running or type(self) is not interpreter:
            return call_function(self, target, args, kwargs)
        try:
            # A tensor that is made of none belongs to the mode that is active.
            mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
            if mode is None or not is_functional(target):
                raise UnknownArgumentError
            given = [args, *chain.from_iterable(sorted(kwargs.items()))]
            tensor = properties.look_up if is_pure(target) and is_numbered(mode) else id
            key = (
                target,
                mode,
                torch.is_grad_enabled(),
                tensor is id,
                key_of(given, FakeTensor, plain, tensor),
            )
        except UnknownArgumentError:
            return call_function(self, target, args, kwargs)
        place = running[-1][key]
        running[-1][key] += 1
        result = results.take(key, place)
        if result is None:
            result = call_function(self, target, args, kwargs)
            if is_plain(result):
                results.put(key, (args, kwargs), result)
        return result

    interpreter.run, interpreter.call_function = run_and_count, call_or_take


SHORTCUT = Shortcut("retraced-shapes", None, "passes reuse fake results", FITS, _install)
