"""A digest of values and of everything that they lead to: what a function got, what it returned, and what it changed.

Two processes with the same memory at their beginning get the same digest where the same was made of it. Objects are
numbered in the order in which they are met, so that it shows which of them are one; addresses are left out.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import hashlib
import logging
import pathlib
import re
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sympy  # type: ignore[import-untyped]
import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch._ops import OperatorBase, OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.graph import CodeGen

#: Objects that are looked at, and how deep one is in others at most.
MOST, DEEPEST = 400_000, 100
#: Metadata of a node that says where it comes from, in lines of sources and in addresses.
ORIGINS = frozenset(("stack_trace", "from_node", "seq_nr"))
PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
#: What says all of itself as text.
TEXTUAL = (
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.SymInt, torch.SymFloat),
    *(
        torch.SymBool,
        torch.qscheme,
        torch.FunctionSchema,
        OperatorBase,
        OpOverload,
        OpOverloadPacket,
        EdgeOpOverload,
    ),
    *(sympy.Basic, re.Pattern, range, slice, pathlib.PurePath, np.dtype),
)
#: What remembers rather than holds, and is made by nothing that is compared.
SURROUNDINGS = (FakeTensorMode, ShapeEnv, CodeGen, logging.Logger, types.ModuleType, property)
#: The flag of classes that Python made (CPython, Include/object.h, Py_TPFLAGS_HEAPTYPE), as it does some that are
#: written in C; and the others that what is read is made from: what else they hold, nobody can read.
MADE_IN_PYTHON = 1 << 9
SOLID = (
    *(object, dict, OrderedDict, defaultdict, types.MappingProxyType, list, deque, tuple, bytearray, set),
    *(frozenset, torch.Size, int, float, str),
)
#: What is its name, but for classes that a function made: their methods hold what that had.
NAMED = (type, types.BuiltinFunctionType, types.GenericAlias, types.UnionType)
#: What a class has of itself.
OF_CLASSES = frozenset(("__dict__", "__weakref__", "__module__", "__doc__", "_abc_impl"))

#: Classes made in C whose state is in what a method writes, which may change it.
WRITING = {"tosa_serializer._tosa_serializer.TosaSerializer": "serialize"}


class UnreadableError(Exception):
    """Something has a state that cannot be read, or more of it than is looked at."""


def digest(*values: Any, may_change: bool = False) -> bytes:
    """Return the digest of some values; raise UnreadableError.

    Parameters
    ----------
    may_change
        Whether reading may change them: in a process that ends.
    """
    found = hashlib.sha256()
    for word in _Reader(may_change).words(values):
        found.update(word.encode(errors="surrogatepass"))
        found.update(b"\0")
    return found.digest()


class _Reader:
    """Yields words for values, and at the end those for the graphs that they led to."""

    def __init__(self, may_change: bool) -> None:
        self.may_change = may_change
        self.met: dict[int, int] = {}
        # What is met lives as long: its address is not given to something else.
        self.kept: list[Any] = []
        self.graphs: deque[torch.fx.Graph] = deque()

    def words(self, values: Sequence[Any]) -> Iterator[str]:
        yield from self._items(values, 0)
        while self.graphs:
            yield from self._graph(self.graphs.popleft())

    def _items(self, values: Sequence[Any], depth: int) -> Iterator[str]:
        yield f"{len(values)}("
        for value in values:
            yield from self._value(value, depth + 1)

    def _value(self, value: Any, depth: int) -> Iterator[str]:
        kind = type(value)
        if kind in PLAIN:
            yield repr(value)
        elif kind is tuple:
            yield from self._items(value, depth)
        elif kind is torch.fx.Node:
            yield from self._node(value)
        elif isinstance(value, TEXTUAL):
            yield f"{kind.__name__} {value}"
        elif isinstance(value, enum.Enum) or hasattr(kind, "__members__"):
            yield f"{_name(kind)}.{value.name}"
        elif isinstance(value, SURROUNDINGS):
            yield _name(kind)
        elif isinstance(value, NAMED) and not _is_made(value):
            yield _name(value)
        elif (number := self._number(value, depth)) is not None:
            yield f"#{number}"
        else:
            yield _name(kind)
            yield from self._content(value, depth)

    def _number(self, value: Any, depth: int) -> int | None:
        """Return the number of an object that was met; None for a new one, which gets one."""
        if (number := self.met.get(id(value))) is None:
            if len(self.kept) > MOST or depth > DEEPEST:
                raise UnreadableError("too much")
            self.met[id(value)] = len(self.kept)
            self.kept.append(value)
        return number

    def _content(self, value: Any, depth: int) -> Iterator[str]:
        """Yield what an object holds."""
        if isinstance(value, types.FunctionType):
            yield from self._function(value, depth)
        elif isinstance(value, type):
            yield _name(value)
            own = [item for item in vars(value).items() if item[0] not in OF_CLASSES]
            yield from self._items([part for item in own for part in item], depth)
        elif isinstance(value, types.MethodType):
            yield from self._items((value.__self__, value.__func__), depth)
        elif isinstance(value, functools.partial):
            yield from self._items((value.func, value.args, value.keywords), depth)
        elif isinstance(value, weakref.ReferenceType):
            yield from self._items((value(),), depth)
        elif isinstance(value, torch.Tensor):
            yield from _tensor(value)
        elif isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject:
                raise UnreadableError(_name(type(value)))
            yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, torch.fx.Graph):
            self.graphs.append(value)
        elif self.may_change and (method := WRITING.get(_name(type(value)))):
            yield hashlib.sha256(getattr(value, method)()).hexdigest()
        else:
            yield from self._members(value, depth)

    def _members(self, value: Any, depth: int) -> Iterator[str]:
        """Yield the items of a container, and the attributes of an object; raise UnreadableError where it has neither.

        The items are asked of the class of Python that it is made from, and of nothing that somebody wrote.
        """
        solid = next(each for each in type(value).__mro__ if not each.__flags__ & MADE_IN_PYTHON)
        if solid not in SOLID:
            raise UnreadableError(_name(type(value)))
        if isinstance(value, dict | types.MappingProxyType):
            yield from self._items([part for item in value.items() for part in item], depth)
        elif isinstance(value, list | tuple | deque | bytearray):
            yield from self._items(list(iter(value)), depth)
        elif isinstance(value, set | frozenset):
            yield from sorted(" ".join(self._member(each)) for each in value)
        elif isinstance(value, int | float | str):
            yield solid.__repr__(value)
        attributes = dict(getattr(value, "__dict__", {}))
        slotted = any("__slots__" in vars(each) for each in type(value).__mro__)
        if solid is object and not (hasattr(value, "__dict__") or slotted or type(value) is object):
            # Of a class made in C.
            raise UnreadableError(_name(type(value)))
        for name in copyreg._slotnames(type(value)):  # type: ignore[attr-defined]
            if hasattr(value, name):
                attributes[name] = getattr(value, name)
        if _is_made(type(value)):
            attributes["__class__"] = type(value)
        for name, each in attributes.items():
            yield name
            yield from self._value(each, depth + 1)

    def _member(self, value: Any) -> Iterator[str]:
        """Yield the words of a member of a set, which has no place that a number could follow."""
        if not isinstance(value, (*PLAIN, *TEXTUAL, tuple, type, enum.Enum, torch.fx.Node)):
            raise UnreadableError(f"a set of {_name(type(value))}")
        yield from self._value(value, 0)

    def _function(self, function: types.FunctionType, depth: int) -> Iterator[str]:
        """Yield what a function is: its name, and, of one that another function made, its code and what that holds."""
        yield _name(function)
        if function.__closure__ or "<locals>" in function.__qualname__:
            code = function.__code__
            yield from self._items((code.co_code, [str(each) for each in code.co_names]), depth)
            constants = [each for each in code.co_consts if not isinstance(each, types.CodeType)]
            yield from self._items(
                (constants, function.__defaults__, function.__kwdefaults__, vars(function)), depth
            )
            cells = function.__closure__ or ()
            yield from self._items([cell.cell_contents for cell in cells], depth)

    def _node(self, node: torch.fx.Node) -> Iterator[str]:
        yield f"node {node.name}"
        yield from self._value(node.graph, 0)

    def _graph(self, graph: torch.fx.Graph) -> Iterator[str]:
        """Yield the nodes of a graph, how the next ones will be named, and the module that has its constants."""
        for node in graph.nodes:
            yield f"{node.op} {node.name}"
            yield from self._items((node.target, node.args, node.kwargs), 0)
            yield from self._items(
                [part for item in node.meta.items() if item[0] not in ORIGINS for part in item], 0
            )
        yield from self._items((dict(graph._graph_namespace._base_count), graph.owning_module), 0)


def _is_made(value: Any) -> bool:
    """Return whether something is a class that a function made."""
    return isinstance(value, type) and "<locals>" in value.__qualname__


def _tensor(tensor: torch.Tensor) -> Iterator[str]:
    yield f"{tensor.dtype} {tuple(tensor.shape)} {tensor.device} {tensor.requires_grad}"
    if isinstance(tensor, FakeTensor) or tensor.device.type == "meta":
        yield str(tensor.stride())
        return
    own = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    if not own or tensor.layout is not torch.strided or tensor.is_quantized:
        raise UnreadableError(_name(type(tensor)))
    with torch._C._DisableTorchDispatch():
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    yield f"{tensor.stride()} {hashlib.sha256(flat.tobytes()).hexdigest()}"


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', thing)}"
