"""A zoo in which each case misbehaves in one way: ``--models tests.support.zoo``.

The cases are small, and all but one are meant for ``xnnpack-fp32``, whose programs run. What varies from one export
to the next does so for the reasons it does in ExecuTorch: a string's hash, a set of strings, a set of objects.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable

import torch

from executorch_goldens import Data, Example, case

SHAPE = (2, 4)

OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": torch.abs,
    "ceil": torch.ceil,
    "floor": torch.floor,
    "neg": torch.neg,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "square": torch.square,
    "tanh": torch.tanh,
}


@case(guards="nothing is wrong with it")
def steady(data: Data) -> Example:
    return Example(torch.nn.Linear(4, 3), (data.tensor("x", *SHAPE),))


@case(guards="an export that kills its process")
def crash(data: Data) -> Example:
    print("last words before the signal", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("unreachable")


@case(guards="an export that ends its process as if all were well")
def quit(data: Data) -> Example:
    os._exit(0)


@case(guards="an export that never ends")
def hang(data: Data) -> Example:
    print("waiting for nothing", flush=True)
    # The limit counts processor time.
    while True:
        pass


class PlusConstant(torch.nn.Module):
    """Adds one value, held as a buffer."""

    value: torch.Tensor

    def __init__(self, value: float) -> None:
        super().__init__()
        self.register_buffer("value", torch.full(SHAPE, value))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.value


@case(guards="a constant that follows the hash seed")
def hashed_constant(data: Data) -> Example:
    return Example(PlusConstant(float(hash("constant") % 1024)), (data.tensor("x", *SHAPE),))


class Each(torch.nn.Module):
    """Applies operators in the order given; the order of the outputs is fixed."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = {name: OPERATORS[name](x) for name in self.names}
        return tuple(outputs[name] for name in sorted(outputs))


@case(guards="an order that comes from a set of strings: the hash seed decides")
def set_of_strings(data: Data) -> Example:
    return Example(Each(set(OPERATORS)), (data.tensor("x", *SHAPE),))


class Named:
    """Hashed by its address, as torch.fx.Node is."""

    def __init__(self, name: str) -> None:
        self.name = name


@case(guards="an order that comes from a set of objects: the heap's layout decides")
def set_of_objects(data: Data) -> Example:
    return Example(
        Each(item.name for item in {Named(name) for name in OPERATORS}), (data.tensor("x", *SHAPE),)
    )


class OtherwiseExported(torch.nn.Module):
    """Computes one thing eagerly and another in the exported program."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 if torch.compiler.is_compiling() else x * 2.5


@case(guards="a program that does not compute what eager computes")
def wrong(data: Data) -> Example:
    return Example(OtherwiseExported(), (data.tensor("x", *SHAPE),))


@torch.library.custom_op("zoo::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    """Do nothing, as an operator that has no out variant and that no backend takes."""
    return x.clone()


@opaque.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Opaque(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.zoo.opaque(x) + 1.0


@case(guards="a model that does not lower")
def does_not_lower(data: Data) -> Example:
    return Example(Opaque(), (data.tensor("x", *SHAPE),))


class Raising(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ArithmeticError("this model cannot run")


@case(guards="a model that does not run")
def does_not_run(data: Data) -> Example:
    return Example(Raising(), (data.tensor("x", *SHAPE),))
