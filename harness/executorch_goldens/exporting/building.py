"""Interface of a case that makes a whole program by itself, as its repository ships it.

The harness's own recipe is one partitioner, one method and the default memory plan. Here the case's function does
whatever it does: several partitioners, passes of its own, settings of ``to_executorch``, several methods, data files.
It names the eager module of each method, which says what should come out (`executorch_goldens.exporting.built`).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from executorch_goldens.exporting.data import Data, Example, in_mode, in_training
from executorch_goldens.files.wording import type_of
from executorch_goldens.zoo.registry import ZooError

#: The method of a program that has one.
FORWARD = "forward"
#: Default tolerance against recorded runs, as a part of the largest value.
BOUND = 2.0**-10


@dataclasses.dataclass(frozen=True)
class Built:
    """A program in bytes, with the data files that it needs.

    Attributes
    ----------
    data
        Contents of each ``.ptd``, by the name of its file.
    """

    pte: bytes
    data: Mapping[str, bytes] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Method:
    """Facts about a method that the program does not hold.

    Attributes
    ----------
    example
        The eager module, as it was when it was named, and its inputs; None where only runs were recorded.
    quantized
        The source of a quantized program's expected outputs; None where none was named.
    recorded
        Inputs and outputs of runs that were recorded elsewhere, by name.
    bound
        The tolerance against these, as a part of the largest value.
    given
        A copy of the module of `example`, which is in eval mode, as it was given; None where that is the same.
    """

    example: Example | None = None
    quantized: torch.nn.Module | None = None
    given: torch.nn.Module | None = None
    recorded: dict[str, tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]] = dataclasses.field(
        default_factory=dict
    )
    bound: float = 0.0

    @property
    def held_to(self) -> str:
        """Return what the outputs must match, for messages."""
        if self.quantized is not None:
            return "its quantized module"
        return "its eager module" if self.example is not None else "recorded runs"


class Build:
    """Argument of a case's build function, with which it makes its program.

    Attributes
    ----------
    data
        Draws inputs and weights that are the same everywhere.
    methods
        The declarations of each method.
    orders
        Methods that are run one after another in one loaded program.
    """

    def __init__(self, name: str) -> None:
        self.data = Data(name)
        self.methods: dict[str, Method] = {}
        self.orders: list[tuple[str, ...]] = []
        # Copies share modules as the originals do. A module quantized in place is another one than before.
        self._memo: dict[int, Any] = {}
        self._quantized_memo: dict[int, Any] = {}

    def method(
        self,
        module: torch.nn.Module,
        inputs: tuple[Any, ...],
        name: str = FORWARD,
        *,
        kwargs: Mapping[str, Any] | None = None,
        dynamic_shapes: Any = None,
    ) -> torch.nn.Module:
        """Name the eager module of a method; return it, as it is.

        A copy of it in eval mode says what the program should give, whatever is done to the module afterwards.

        Parameters
        ----------
        inputs, kwargs
            The inputs, as for `torch.export.export`; further samples are drawn like it.
        name
            Name of the method.
        dynamic_shapes
            Shapes as for `torch.export.export`: the program is run at the least and the largest sizes as well.

        Raises
        ------
        ZooError
            For what is no module, no tuple, or a method that was named before.
        """
        if not isinstance(module, torch.nn.Module):
            raise ZooError(f"build.method({name!r}): {type_of(module)} is no torch.nn.Module")
        if not isinstance(inputs, tuple):
            raise ZooError(f"build.method({name!r}): inputs are a tuple: write (input,)")
        method = self.methods.setdefault(name, Method())
        if method.example is not None:
            raise ZooError(f"build.method({name!r}): the method has its module already")
        method.given = copy.deepcopy(module) if [*in_training(module)] else None
        copied = in_mode(copy.deepcopy(module, self._memo))
        method.example = Example(
            copied, inputs, fill=False, kwargs=kwargs or {}, dynamic_shapes=dynamic_shapes
        )
        return module

    def quantized(self, module: torch.nn.Module, name: str = FORWARD) -> torch.nn.Module:
        """Declare the eager module that a quantized method computes; return it.

        That is what ``convert_pt2e`` gives, or a module whose weights torchao has quantized. The program has to match
        it, and it has to be near the module of `method`. Without it a quantized program is held to the float module.

        Raises
        ------
        ZooError
            The argument is no module, or `method` was not called for the method.
        """
        if not isinstance(module, torch.nn.Module):
            raise ZooError(f"build.quantized({name!r}): {type_of(module)} is no torch.nn.Module")
        if (method := self.methods.get(name)) is None or method.example is None:
            raise ZooError(f"build.quantized({name!r}): name the float module first: build.method(...)")
        method.quantized = in_mode(copy.deepcopy(module, self._quantized_memo))
        return module

    def recorded(
        self,
        inputs: tuple[torch.Tensor, ...],
        outputs: tuple[torch.Tensor, ...],
        name: str = FORWARD,
        *,
        sample: str = "recorded",
        bound: float = BOUND,
    ) -> None:
        """Declare the results of a method elsewhere.

        Parameters
        ----------
        inputs, outputs
            Tensors of one run.
        name
            Name of the method.
        sample
            The name of the run.
        bound
            The tolerance against `outputs`, as a part of the largest value: nothing else is known of it.

        Raises
        ------
        ZooError
            For tuples of something else than tensors, or a sample that is there already.
        """
        for what, given in (("inputs", inputs), ("outputs", outputs)):
            if not isinstance(given, tuple) or not all(isinstance(each, torch.Tensor) for each in given):
                raise ZooError(f"build.recorded({name!r}): {what} are a tuple of tensors")
        if isinstance(bound, bool) or not 0.0 <= bound < 1.0:
            what = f"bound is a part of the largest value, from 0 and below 1, and not {bound!r}"
            raise ZooError(f"build.recorded({name!r}): {what}")
        method = self.methods.setdefault(name, Method())
        if sample in method.recorded:
            raise ZooError(f"build.recorded({name!r}): there is a sample {sample!r} already")
        method.recorded[sample] = (inputs, outputs)
        method.bound = max(method.bound, bound)

    def in_order(self, *names: str) -> None:
        """Have methods run one after another in one loaded program, as a prefill before its decodes.

        The expected outputs are those of the eager modules, sharing their state in the same way.
        """
        self.orders.append(names)
