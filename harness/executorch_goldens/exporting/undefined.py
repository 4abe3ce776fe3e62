"""Finds values of eager that lowering need not match: undefined in torch, or outside a domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch._ops import HigherOrderOperator
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from executorch_goldens.exporting.eager import is_float8

T = TypeVar("T")

SHIFTS = frozenset(
    {
        *("bitwise_left_shift", "bitwise_right_shift", "bitwise_left_shift_", "bitwise_right_shift_"),
        *("__lshift__", "__rshift__", "__ilshift__", "__irshift__"),
    }
)
CASTS = frozenset({"_to_copy", "to", "copy", "copy_"})
DIVISIONS = frozenset({"div", "floor_divide", "remainder", "fmod"})
#: Operators of integers whose results may have more bits than these have; then they wrap around.
WRAPPING = frozenset({"add", "sub", "rsub", "mul", "neg", "abs", "sum", "cumsum", "mm", "bmm"})


class Undefined(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, records operators with inputs for which they are undefined.

    Attributes
    ----------
    undefined
        What torch leaves open: what comes out may differ from run to run, and from kernel to kernel. C++ says so of
        shifts by a negative number of bits or by as many as there are ([expr.shift]), of casts of floating numbers that
        the integer cannot hold ([conv.fpint]), and of the least integer divided by minus one ([expr.mul]).
    beyond
        What comes out is no finite number though what goes in is, or integers wrap around: torch says what it is,
        and other arithmetic need not have it.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.undefined: dict[str, None] = {}
        self.beyond: dict[str, None] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            return run_nested(self, func, args, kwargs)
        if why := _undefined(func, args, kwargs):
            self.undefined[f"{_called(func)} {why}"] = None
        given = [x.clone() if func._schema.is_mutable else x for x in leaves((args, kwargs), torch.Tensor)]
        made = func(*args, **kwargs)
        if why := _beyond(func, given, args, kwargs, made):
            self.beyond[f"{_called(func)} {why}"] = None
        return made


def run_nested(
    mode: TorchDispatchMode, func: HigherOrderOperator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Run a condition or a loop operator by operator under a mode, and any other nested graph as it is."""
    name = func.name()  # type: ignore[no-untyped-call]
    with mode:
        if name == "cond":
            condition, taken, other, operands = args
            return (taken if condition else other)(*operands)
        if name == "while_loop":
            condition, body, carried, *further = args
            beside = tuple(further[0]) if further else ()
            while condition(*carried, *beside):
                carried = body(*carried, *beside)
            return tuple(carried)
    return func(*args, **kwargs)


def _undefined(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the reason why torch leaves a call undefined; empty if it does not."""
    name = func.overloadpacket.__name__
    if name in SHIFTS:
        return _undefined_shift(args)
    if name in CASTS:
        return _undefined_cast(name, args, kwargs)
    if name.removesuffix("_") in DIVISIONS and (kwargs.get("rounding_mode") or name != "div"):
        return _undefined_division(args)
    return ""


def _undefined_shift(args: Sequence[Any]) -> str:
    shifted, by = (torch.as_tensor(each) for each in args[:2])
    bits = torch.iinfo(torch.result_type(args[0], args[1])).bits
    if shifted.numel() and by.numel() and bool(((by < 0) | (by >= bits)).any()):
        return f"shifts by bits that an integer of {bits} does not have"
    return ""


def _undefined_cast(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    is_copy = name in ("copy", "copy_")
    source = args[1] if is_copy else args[0]
    target = args[0].dtype if is_copy else _dtype(args[1:], kwargs)
    if not isinstance(source, torch.Tensor) or not source.is_floating_point() or not _is_integer(target):
        return ""
    limits = torch.iinfo(target)
    wide = source.double().trunc()
    # 2**63 - 1 is no float64: what is less than the next is in range.
    inside = (wide >= float(limits.min)) & (wide < float(limits.max) + 1.0)
    return "" if bool(inside.all()) else f"casts what {str(target).removeprefix('torch.')} cannot hold"


def _undefined_division(args: Sequence[Any]) -> str:
    if not all(_is_integer(x.dtype) for x in leaves(args, torch.Tensor)):
        return ""
    of, by = (torch.as_tensor(each) for each in args[:2])
    if not _is_integer(of.dtype) or not _is_integer(by.dtype):
        return ""
    least = torch.iinfo(torch.result_type(args[0], args[1])).min
    return "divides the least integer by minus one" if bool(((of == least) & (by == -1)).any()) else ""


def _beyond(
    func: Any, given: Sequence[torch.Tensor], args: Sequence[Any], kwargs: Mapping[str, Any], made: Any
) -> str:
    """Return how the result of a call leaves the range of its inputs; empty if it does not."""
    results = [*leaves(made, torch.Tensor)]
    if _leaves_finite(given, args, results):
        return "gives no finite number for finite ones"
    return "wraps around" if _wraps(func, given, args, kwargs, results) else ""


def _leaves_finite(
    given: Sequence[torch.Tensor], args: Sequence[Any], results: Sequence[torch.Tensor]
) -> bool:
    """Return whether all floating inputs are finite and an output is not."""
    floating = [x for x in given if x.is_floating_point()]
    return (
        bool(floating)
        and all(map(_is_finite, floating))
        and all(map(math.isfinite, leaves(args, float)))
        and any(x.is_floating_point() and not _is_finite(x) for x in results)
    )


def _wraps(
    func: Any,
    given: Sequence[torch.Tensor],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    results: Sequence[torch.Tensor],
) -> bool:
    """Return whether computing in 64-bit integers gives different values from the narrower inputs."""
    whole = [x for x in given if _is_integer(x.dtype) and x.dtype is not torch.int64]
    if func.overloadpacket.__name__ not in WRAPPING or not whole or len(whole) != len(given):
        return False
    wide = pytree.tree_map_only(torch.Tensor, torch.Tensor.long, tuple(args))
    return any(
        _is_integer(result.dtype) and not torch.equal(func(*wide, **kwargs), result.long())
        for result in results
    )


def _is_finite(value: torch.Tensor) -> bool:
    # torch says it of no float8.
    return bool((value.float() if is_float8(value) else value).isfinite().all())


def leaves(values: Any, kind: type[T]) -> Iterator[T]:
    """Yield what is of a kind among the arguments or the results of an operator, in order.

    These are nested in tuples, lists and dictionaries alone; torch's walk over any registered type takes several times
    as long.
    """
    if isinstance(values, kind):
        yield values
    elif isinstance(values, tuple | list):
        for each in values:
            yield from leaves(each, kind)
    elif isinstance(values, dict):
        yield from leaves([*values.values()], kind)


def _is_integer(dtype: Any) -> bool:
    return isinstance(dtype, torch.dtype) and not (
        dtype.is_floating_point or dtype.is_complex or dtype is torch.bool
    )


def _dtype(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the dtype that a call asks for."""
    found = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.dtype)]
    return found[0] if found else None


def _called(func: Any) -> str:
    return str(func).removesuffix(".default")
