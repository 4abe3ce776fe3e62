"""Cases with something changed: what a search adds to a comparison (`CHANGES`).

A changed case wraps the model of another one, so that what it is about stays: its inputs come in another layout or
rank, its output has a second user, and so on; or it is that model's graph with an operator changed
(`rewriting`). Its name says which case it is, and what is changed: ``cat-h-v-x-rotated``.
An export that is asked for a case of such a name makes it.
"""

from __future__ import annotations

import copy
import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.zoo.registry import CASES, Case, ZooError, changed_name
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens_plugins.compare.calls import ARGS, AS_IT_IS, borrowed, is_borrowing, read
from executorch_goldens_plugins.compare.exporting import one_call, rewriting
from executorch_goldens_plugins.compare.exporting.rewriting import NotChangedError

Change = Callable[[Example], Example]
#: Sizes that a dimension of unknown size may have.
LEAST, LARGEST = 1, 64


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


def stacked(example: Example) -> Example:
    """The inputs have a further first dimension, of size two, where the model takes that."""
    return _inputs(example, lambda each: torch.stack((each, each.flip(0) if each.dim() else each)))


def unknown(example: Example) -> Example:
    """The first dimension of every input has an unknown size."""
    size = torch.export.Dim("size", min=LEAST, max=LARGEST)
    shapes = tuple(
        {0: size} if isinstance(each, torch.Tensor) and each.dim() else None for each in example.inputs
    )
    if not any(shapes):
        raise NotChangedError("no input has a dimension")
    return replace(example, dynamic_shapes=shapes)


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


def twice(example: Example) -> Example:
    """The model runs twice, on the input and on twice the input, with the same weights."""
    return replace(example, module=Beside(example.module, example.module))


def copied(example: Example) -> Example:
    """The model runs twice, as `twice` does, with equal weights that are not the same."""
    return replace(example, module=Beside(example.module, copy.deepcopy(example.module)))


class Beside(torch.nn.Module):
    """Two models, the second on twice the inputs."""

    def __init__(self, one: torch.nn.Module, other: torch.nn.Module) -> None:
        super().__init__()
        self.one = one
        self.other = other

    def forward(self, *inputs: Any) -> Any:
        return self.one(*inputs), self.other(*(each * 2 for each in inputs))


def mantissas(example: Example) -> Example:
    """Weights and inputs have full mantissas: each is up to a sixteenth larger, zeros stay zeros."""

    def fuller(name: str, each: torch.Tensor) -> torch.Tensor:
        if not each.is_floating_point() or each.element_size() < 2:
            return each
        further = Data(name).generator("mantissas").random(tuple(each.shape)) / 16
        return (each.double() * (1 + torch.from_numpy(np.asarray(further)))).to(each.dtype)

    module = example.module
    state = {
        name: fuller(name, each)
        for name, each in module.state_dict().items()
        if isinstance(each, torch.Tensor)
    }
    module.load_state_dict({**module.state_dict(), **state})
    inputs = tuple(
        fuller(str(place), each) if isinstance(each, torch.Tensor) else each
        for place, each in enumerate(example.inputs)
    )
    return replace(example, module=module, inputs=inputs)


#: Changes by a rewrite of the graph.
_REWRITTEN: Mapping[str, Change] = {
    name: functools.partial(rewriting.rewritten, rewrite=each) for name, each in rewriting.REWRITES.items()
}
#: Changes by name, in the order in which a search tries them.
CHANGES: Mapping[str, Change] = {
    "mantissas": mantissas,
    **{name: _REWRITTEN[name] for name in rewriting.FIRST},
    "stacked": stacked,
    "rotated": _of_outputs(lambda each: each.permute(_rotation(each.dim()))),
    "turned": inputs_rotated,
    "unknown": unknown,
    "two-users": _of_outputs(lambda each: (each, torch.relu(each))),
    "of-one": of_one,
    "copied": copied,
    "last": channels_last,
    "sliced": _of_outputs(lambda each: each[..., :1]),
    "rotated-back": _of_outputs(lambda each: each.permute(each.dim() - 1, *range(each.dim() - 1))),
    "nhwc": _of_outputs(lambda each: each.permute(_behind_first(each.dim()))),
    "flat": _of_outputs(lambda each: each.reshape(-1)),
    "doubled": _of_outputs(lambda each: torch.cat((each, each), 0)),
    "added": _of_outputs(lambda each: each + each),
    "twice": twice,
    "rectified": _of_outputs(torch.relu),
    **_REWRITTEN,
    AS_IT_IS: lambda example: example,
}


def changed(case: Case, changes: tuple[str, ...], module: str = __name__) -> Case:
    """Return a case with something changed; its function raises `NotChangedError` where the model does not take it.

    Parameters
    ----------
    module
        The module that it is registered in.
    """

    def build(data: Data) -> Example:
        if case.module == ARGS and changes != (AS_IT_IS,):
            return one_call.build(functools.reduce(borrowed, changes, read()[case.name]), Data(case.name))
        example: Example = case.build(Data(case.name))
        if changes == (AS_IT_IS,):
            return example
        if example.kwargs or example.dynamic_shapes or example.program is not None:
            raise NotChangedError("keyword arguments, open sizes and programs are left as they are")
        if example.fill and "mantissas" in changes:
            example = replace(example, module=Data(case.name).fill(example.module), fill=False)
        for name in changes:
            example = CHANGES[name](example)
        with torch.no_grad():
            example.module.eval()(*example.inputs)
        return example

    functools.update_wrapper(build, case.build)
    build.__module__ = module
    return replace(
        case,
        name=changed_name(case.name, changes),
        build=build,
        guards=f"{case.guards}; {', '.join(changes)}",
        constant_outputs=False,
    )


def keep(to: str, module: str, name: str, *changes: str, target: str) -> None:
    """Register a case of another module with something changed: what a search prints, in a module of a zoo.

    Parameters
    ----------
    to
        ``__name__`` of the module that this is in.
    changes
        Names of `CHANGES`.
    target
        The target that it is exported for.

    Raises
    ------
    executorch_goldens.zoo.registry.ZooError
        For a case or a change that there is not.
    """
    if unknown := [each for each in changes if each not in CHANGES and not is_borrowing(each)]:
        raise ZooError(f"{unknown[0]!r} is no change; there are {', '.join(CHANGES)}")
    found = changed(_case(module, name), changes, to)
    also = (target,) if target in TARGETS and TARGETS[target].opt_in else ()
    CASES.add(replace(found, backends=(target,), also=also))


def _case(module: str, name: str) -> Case:
    found = importlib.import_module(module)
    # One that was put off (`exporting.alone`) runs when this is asked for.
    getattr(found, "__all__", None)
    case = CASES.within([module], name).get(name)
    if case is None:
        raise ZooError(f"{module} registers no case {name!r}")
    return case
