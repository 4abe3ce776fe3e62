"""Arguments of a call of a module as ``torch.export`` takes them: nested, and not all tensors.

Everywhere else in the harness the inputs of a run are a flat tuple of tensors. A `CallSpec` turns these into the
arguments of the eager module, and into what the runtime takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.files.wording import type_of
from executorch_goldens.zoo.registry import ZooError

#: Types of inputs besides tensors: the program is specialised on them.
CONSTANTS = (type(None), bool, int, float, str)


#: Stands for a tensor in `CallSpec.leaves`.
TENSOR = torch.Tensor


@dataclass(frozen=True)
class CallSpec:
    """The structure of a module's arguments, and those that are no tensors.

    Attributes
    ----------
    spec
        Structure of ``(args, kwargs)``.
    leaves
        Arguments in order, `TENSOR` where a tensor is.
    """

    spec: pytree.TreeSpec
    leaves: tuple[Any, ...]

    @classmethod
    def from_arguments(cls, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallSpec:
        leaves, spec = pytree.tree_flatten((args, dict(kwargs)))
        return cls(spec, tuple(TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves))

    @property
    def is_plain(self) -> bool:
        """Return whether the arguments are positional tensors only."""
        positional = pytree.tree_structure((self.leaves, {}))
        return self.spec == positional and not self.constants

    @property
    def constants(self) -> tuple[Any, ...]:
        """The leaves that are no tensors, in order."""
        return tuple(leaf for leaf in self.leaves if leaf is not TENSOR)

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """Return all leaves; raise ValueError unless there is a tensor for each `TENSOR`."""
        if len(tensors) != self.leaves.count(TENSOR):
            raise ValueError(f"{self.leaves.count(TENSOR)} tensors are taken, and not {len(tensors)}")
        remaining = iter(tensors)
        return [next(remaining) if leaf is TENSOR else leaf for leaf in self.leaves]

    def arguments(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments that hold `tensors`."""
        args, kwargs = pytree.tree_unflatten(self.with_tensors(tensors), self.spec)
        return args, kwargs

    @handed_on
    def run(self, module: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
        """Return the result of `module`."""
        args, kwargs = self.arguments(tensors)
        return module(*args, **kwargs)

    def flat(self, module: torch.nn.Module) -> torch.nn.Module:
        """Return a module that takes tensors only, one after the other; `module` itself where it is such a one."""
        return module if self.is_plain else _Flat(module, self)

    def for_runtime(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Return inputs for ExecuTorch's runtime: every leaf, in order.

        A program refuses other numbers than those that it was exported with. It has nothing in place of a string
        (``Null`` in the ``.pte`` of all five releases).
        """
        return tuple(None if isinstance(leaf, str) else leaf for leaf in self.with_tensors(tensors))

    def declared(self, module: torch.nn.Module, dynamic_shapes: Any) -> list[tuple[Any, Any]]:
        """Return each leaf with its declaration in ``dynamic_shapes``; None for none.

        What does not fit the arguments declares nothing here: ``torch.export`` has the message for it.
        """
        found: dict[int, Any] = {}
        if dynamic_shapes:
            given = self._by_parameter(module)
            found.update(_pairs(given, _of_parameters(dynamic_shapes, given)))
        return [(leaf, found.get(number)) for number, leaf in enumerate(self.leaves)]

    def shapes(self, module: torch.nn.Module, dynamic_shapes: Any) -> list[Any]:
        """Return the declaration in ``dynamic_shapes`` of each tensor, in order."""
        return [shape for leaf, shape in self.declared(module, dynamic_shapes) if leaf is TENSOR]

    def names(self, module: torch.nn.Module) -> list[str]:
        """Return the name of each tensor: the parameter of the module, and the path into it.

        ``x``, ``states.h``, ``cache.keys``, ``layers.0``. What the module has no parameter for is called by its place.
        """
        found = {
            number: ".".join(str(_step(key)) for key in path)
            for path, number in pytree.tree_leaves_with_path(self._by_parameter(module))
        }
        return [found[number] for number, leaf in enumerate(self.leaves) if leaf is TENSOR]

    def _by_parameter(self, module: torch.nn.Module) -> dict[str, Any]:
        """Return the numbers of the leaves by the names that ``dynamic_shapes`` has for the arguments that they are in.

        By position if the module has none.
        """
        args, kwargs = pytree.tree_unflatten(list(range(len(self.leaves))), self.spec)
        try:
            return dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)
        except (TypeError, ValueError):
            return {**{str(number): argument for number, argument in enumerate(args)}, **kwargs}

    @property
    def has_keywords(self) -> bool:
        """Return whether there are keyword arguments."""
        return bool(pytree.tree_unflatten(list(self.leaves), self.spec)[1])


def _step(key: Any) -> object:
    """Return the name of a step of a path: a key, a number, or a field."""
    return next(getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name))


def tensors_in(tree: Any) -> tuple[torch.Tensor, ...]:
    """Return the tensors of a tree, in the order of its leaves."""
    return tuple(leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor))


class _Flat(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, call: CallSpec) -> None:
        super().__init__()
        self.module = module
        self.call = call
        self.training = module.training

    @handed_on
    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.call.run(self.module, tensors)


def dimensions(declared: Any) -> list[tuple[int, Any]]:
    """Return the dimensions of an input with their declarations in ``dynamic_shapes``."""
    if isinstance(declared, Mapping):
        return list(declared.items())
    return list(enumerate(declared)) if isinstance(declared, Sequence) else []


def require_leaves(what: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise `ZooError` for an input that is neither a tensor nor one of `CONSTANTS`."""
    for leaf in pytree.tree_leaves((args, dict(kwargs))):
        if not isinstance(leaf, (torch.Tensor, *CONSTANTS)):
            raise ZooError(
                f"an input of {what} is {type_of(leaf)}: inputs are tensors, numbers, strings and None, also "
                "in tuples, lists, dictionaries and classes that torch.export.register_dataclass knows; let the "
                "module hold anything else"
            )


def _of_parameters(dynamic_shapes: Any, given: Mapping[str, Any]) -> Any:
    """Return ``dynamic_shapes`` by parameter, as torch does: further keywords may be declared beside the others."""
    if not isinstance(dynamic_shapes, Mapping):
        return dynamic_shapes
    of_keywords = {
        name: dynamic_shapes
        for name, argument in given.items()
        if isinstance(argument, Mapping) and argument.keys() & dynamic_shapes.keys()
    }
    known = of_keywords.keys() | (given.keys() & dynamic_shapes.keys())
    return {**of_keywords, **dynamic_shapes} if known else list(dynamic_shapes.values())


def _pairs(argument: Any, shape: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of each leaf of an argument with its declaration.

    A class that torch does not know by itself is declared as the list of what it is made of.
    """
    if isinstance(argument, int):
        yield argument, shape
        return
    children = pytree.tree_leaves(argument, is_leaf=lambda part: part is not argument)
    if isinstance(argument, Mapping) and isinstance(shape, Mapping):
        shapes: Sequence[Any] = [shape.get(key) for key in argument]
    else:
        shapes = list(shape) if isinstance(shape, Sequence) else []
    for child, each in zip(children, shapes, strict=False):
        yield from _pairs(child, each)
