"""Cases with one or two things changed: what a search adds to a comparison, as a zoo (`CHANGES`).

A changed case wraps the model of another one, so that what it is about stays: its inputs come in another layout or
rank, its output has a second user, and so on. `VARIABLE` names the ones to register, as JSON.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.zoo.registry import CASES, Case, ZooError

#: The environment variable with the cases to register: a list of [module, case, changes].
VARIABLE = "EXECUTORCH_GOLDENS_CHANGED"

Change = Callable[[Example], Example]


class NotChangedError(ValueError):
    """A change that does not fit a model."""


class Around(torch.nn.Module):
    """A model between what is done to its inputs and what is done to its outputs."""

    def __init__(
        self,
        inner: torch.nn.Module,
        before: Callable[..., tuple[Any, ...]] = lambda *inputs: inputs,
        after: Callable[[torch.Tensor], Any] = lambda output: output,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.before = before
        self.after = after

    def forward(self, *inputs: Any) -> Any:
        outputs = self.inner(*self.before(*inputs))
        if isinstance(outputs, torch.Tensor):
            return self.after(outputs)
        if isinstance(outputs, tuple | list) and isinstance(outputs[0], torch.Tensor):
            return (self.after(outputs[0]), *outputs[1:])
        return outputs


def _of_outputs(after: Callable[[torch.Tensor], Any]) -> Change:
    return lambda example: replace(example, module=Around(example.module, after=after))


def _rotation(rank: int) -> tuple[int, ...]:
    """Return a permutation that is not its own inverse, from rank 3 on.

    >>> _rotation(4)
    (1, 2, 3, 0)
    """
    return (*range(1, rank), 0)


def _behind_first(rank: int) -> tuple[int, ...]:
    """Return a permutation that leaves the first dimension, as from NCHW to NHWC.

    >>> _behind_first(4)
    (0, 2, 3, 1)
    """
    return (0, *range(2, rank), 1) if rank > 2 else _rotation(rank)


def _inputs(example: Example, change: Callable[[torch.Tensor], torch.Tensor]) -> Example:
    """Return an example whose tensors among the inputs are changed."""
    found = tuple(change(each) if isinstance(each, torch.Tensor) else each for each in example.inputs)
    if not any(isinstance(each, torch.Tensor) for each in found):
        raise NotChangedError("it has no input that is a tensor")
    return replace(example, inputs=found)


def _before(example: Example, change: Callable[[Any], Any]) -> Example:
    def before(*inputs: Any) -> tuple[Any, ...]:
        return tuple(change(each) if isinstance(each, torch.Tensor) else each for each in inputs)

    return replace(example, module=Around(example.module, before))


def inputs_rotated(example: Example) -> Example:
    """The inputs come with their dimensions rotated, and are rotated back."""

    def given(tensor: torch.Tensor) -> torch.Tensor:
        rank = tensor.dim()
        return tensor.permute(rank - 1, *range(rank - 1)).contiguous() if rank else tensor

    return _before(_inputs(example, given), lambda each: each.permute(_rotation(each.dim())))


def inputs_deeper(example: Example) -> Example:
    """The inputs come with a further dimension of size one."""
    return _before(_inputs(example, lambda each: each.unsqueeze(0)), lambda each: each.squeeze(0))


def channels_last(example: Example) -> Example:
    """Inputs of rank 4 are channels-last in memory."""
    if not any(isinstance(each, torch.Tensor) and each.dim() == 4 for each in example.inputs):
        raise NotChangedError("it has no input of rank 4")
    return _inputs(
        example, lambda each: each.to(memory_format=torch.channels_last) if each.dim() == 4 else each
    )


def of_one(example: Example) -> Example:
    """Every dimension of the inputs but the largest has size one, where the model takes that."""

    def cut(each: torch.Tensor) -> torch.Tensor:
        keep = max(range(each.dim()), key=lambda dim: each.shape[dim]) if each.dim() else 0
        for dim in range(each.dim()):
            each = each if dim == keep else each.narrow(dim, 0, 1)
        return each.contiguous()

    return _inputs(example, cut)


def _cut(dim: int) -> Change:
    def cut(each: torch.Tensor) -> torch.Tensor:
        return each.narrow(dim, 0, 1).contiguous() if -each.dim() <= dim < each.dim() else each

    return lambda example: _inputs(example, cut)


def _odd(dim: int) -> Change:
    def grown(each: torch.Tensor) -> torch.Tensor:
        if not -each.dim() <= dim < each.dim():
            return each
        further = each.narrow(dim, 0, 1)
        return torch.cat([each, further] if each.shape[dim] % 2 == 0 else [each, further, further], dim)

    return lambda example: _inputs(example, grown)


def same_twice(example: Example) -> Example:
    """Inputs of one shape are the same tensor."""
    if len(example.inputs) < 2:
        raise NotChangedError("it has one input")
    count = len(example.inputs)
    return replace(
        example, module=Around(example.module, lambda one: (one,) * count), inputs=example.inputs[:1]
    )


def constant_operand(example: Example) -> Example:
    """The last of several inputs is a constant of the model."""
    if len(example.inputs) < 2:
        raise NotChangedError("it has one input")
    *first, last = example.inputs
    return replace(
        example, module=Around(example.module, lambda *inputs: (*inputs, last)), inputs=tuple(first)
    )


def twice(example: Example) -> Example:
    """The model runs twice, on the input and on twice the input, with the same weights."""

    class Twice(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *inputs: Any) -> Any:
            return self.inner(*inputs), self.inner(*(each * 2 for each in inputs))

    return replace(example, module=Twice(example.module))


def half(example: Example) -> Example:
    """Weights and inputs are bfloat16."""
    changed = _inputs(example, lambda each: each.bfloat16() if each.is_floating_point() else each)
    return replace(changed, module=example.module.bfloat16())


#: What may be changed, by name.
CHANGES: Mapping[str, Change] = {
    "rotated": _of_outputs(lambda each: each.permute(_rotation(each.dim()))),
    "nhwc": _of_outputs(lambda each: each.permute(_behind_first(each.dim()))),
    "two-users": _of_outputs(lambda each: (each, torch.relu(each))),
    "doubled": _of_outputs(lambda each: torch.cat((each, each), 0)),
    "added": _of_outputs(lambda each: each + each),
    "flat": _of_outputs(lambda each: each.reshape(-1)),
    "sliced": _of_outputs(lambda each: each[..., :1]),
    "rectified": _of_outputs(torch.relu),
    "turned": inputs_rotated,
    "deeper": inputs_deeper,
    "last": channels_last,
    "ones": of_one,
    "thin": _cut(-1),
    "single": _cut(0),
    "flat-channels": _cut(1),
    "odd": _odd(-1),
    "more": _odd(0),
    "same": same_twice,
    "constant": constant_operand,
    "twice": twice,
    "half": half,
}


def name_of(case: str, changes: tuple[str, ...]) -> str:
    """Return the name of a changed case.

    >>> name_of("cat-h-v", ("ones", "rotated"))
    'cat-h-v-x-ones-rotated'
    """
    return "-".join((case, "x", *changes))


def changed(case: Case, changes: tuple[str, ...], module: str = __name__) -> Case:
    """Return a case with something changed; its function raises `NotChangedError` where the model does not take it.

    Parameters
    ----------
    module
        The one that it is registered in.
    """

    def build(data: Data) -> Example:
        example: Example = case.build(Data(case.name))
        if example.kwargs or example.dynamic_shapes or example.program is not None:
            raise NotChangedError("keyword arguments, open sizes and programs are left as they are")
        for name in changes:
            example = CHANGES[name](example)
        with torch.no_grad():
            example.module.eval()(*example.inputs)
        return example

    functools.update_wrapper(build, case.build)
    build.__module__ = module
    return replace(
        case,
        name=name_of(case.name, changes),
        build=build,
        guards=f"{case.guards}; {', '.join(changes)}",
        constant_outputs=False,
        expects={},
        unchecked=(),
    )


def keep(to: str, module: str, name: str, *changes: str) -> None:
    """Register a case of another module with something changed: what a search prints, in a module of a zoo.

    Parameters
    ----------
    to
        ``__name__`` of the module that this is in.
    changes
        Names of `CHANGES`.

    Raises
    ------
    executorch_goldens.zoo.registry.ZooError
        For a case or a change that there is not.
    """
    if unknown := [each for each in changes if each not in CHANGES]:
        raise ZooError(f"{unknown[0]!r} is no change; there are {', '.join(CHANGES)}")
    CASES.add(changed(_case(module, name), changes, to))


def register(wanted: str) -> None:
    """Register the cases that `VARIABLE` names."""
    for module, name, changes in json.loads(wanted):
        CASES.add(changed(_case(module, name), tuple(changes)))


def _case(module: str, name: str) -> Case:
    found = importlib.import_module(module)
    # One that was put off (`exporting.alone`) runs when this is asked for.
    getattr(found, "__all__", None)
    case = CASES.within([module]).get(name)
    if case is None:
        raise ZooError(f"{module} registers no case {name!r}")
    return case


register(os.environ.get(VARIABLE, "[]"))
