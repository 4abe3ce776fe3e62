"""Inputs for the lowered program of a case: its example, similar and recorded ones, other sizes, steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from executorch_goldens.exporting.calls import dimensions
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.numerics.programs import Steps
from executorch_goldens.zoo.registry import Case

#: Sizes that the dynamic dimensions of the inputs may have together.
SIZES = ("least", "largest")
#: Elements of an input above which its largest size is not run, but twice that of the example.
ELEMENTS = 1 << 20
#: torch.export takes a size of 0 or 1 for a constant unless the least is said to be that.
LEAST = 2

#: Inputs of the steps after the first.
STEPS: Mapping[str, tuple[str, ...]] = {
    "second step": ("example", "drawn"),
    "third step": ("example", "drawn", "extremes"),
}


def samples_of(
    case: Case, example: Example, remembers: bool = False
) -> dict[str, tuple[tuple[torch.Tensor, ...], ...]]:
    """Return the inputs of the lowered program of `case`, by sample name: one or several steps.

    Where dimensions are dynamic, at their least and largest as well.

    Parameters
    ----------
    remembers
        Whether the model has a state that it changes: it is run for several steps in a row as well.
    """
    data = Data(case.name)

    def inputs(sample: str) -> tuple[torch.Tensor, ...]:
        return example.tensors if sample == "example" else data.all_like(example.tensors, sample)

    names = case.run_on if example.tensors else ("example",)
    samples: dict[str, tuple[tuple[torch.Tensor, ...], ...]] = {name: (inputs(name),) for name in names}
    samples.update({name: (tensors,) for name, tensors in example.recordings.items()})
    resized = {which: made for which in SIZES if (made := _of_size(example, which))}
    for which, made in resized.items():
        samples[which] = (data.all_like(made, which) if "drawn" in names else made,)
    for name, steps in STEPS.items() if remembers else ():
        samples[name] = tuple(inputs(step if step in names else "example") for step in steps)
    return samples


def alone(samples: Mapping[str, Steps], name: str) -> str:
    """Return the sample of one step that has the inputs of the last step of another; empty where there is none."""
    *before, last = samples[name]
    same = (
        other
        for other, (first, *others) in samples.items()
        if not others and all(map(torch.equal, first, last))
    )
    return next(same, "") if before else ""


def _of_size(example: Example, which: str) -> tuple[torch.Tensor, ...]:
    """Return the inputs of an example repeated, or cut off, to one of `SIZES`; none where that is their own."""
    tensors = example.tensors
    declared = example.call.shapes(example.module, example.dynamic_shapes)
    found = [dict(_sizes(*each, which)) for each in zip(tensors, declared, strict=True)]
    for tensor, sizes in zip(tensors, found, strict=True):
        whole = [sizes.get(dimension, size) for dimension, size in enumerate(tensor.shape)]
        if torch.Size(whole).numel() > ELEMENTS:
            found = [{d: 2 * own.shape[d] for d in its} for own, its in zip(tensors, found, strict=True)]
            break
    return _resized(tensors, found)


def unbounded(example: Example) -> tuple[str, ...]:
    """Return the dynamic dimensions of the inputs that may be of any size, in words."""
    call = example.call
    found = []
    shapes = call.shapes(example.module, example.dynamic_shapes)
    for name, of_input in zip(call.names(example.module), shapes, strict=True):
        for dimension, dim in dimensions(of_input):
            is_dim = isinstance(dim, torch.export.Dim)
            # A dimension without a name, ``Dim.AUTO`` for instance, may have a bound, too.
            is_dynamic = is_dim or (dim is not None and not isinstance(dim, int))
            if is_dynamic and not isinstance(getattr(dim, "max", None), int):
                called = f" ({dim.__name__})" if is_dim else ""
                found.append(f"dimension {dimension} of input {name}{called}")
    return tuple(found)


def _resized(tensors: Sequence[torch.Tensor], found: Sequence[Mapping[int, int]]) -> tuple[torch.Tensor, ...]:
    pairs = [*zip(tensors, found, strict=True)]
    if all(tensor.shape[d] == size for tensor, sizes in pairs for d, size in sizes.items()):
        return ()
    made: dict[int, torch.Tensor] = {}
    for tensor, sizes in pairs:
        resized = tensor
        for dimension, size in sizes.items():
            resized = resized.index_select(dimension, torch.arange(size) % tensor.shape[dimension])
        if tensor.dim() == 4 and not tensor.is_contiguous():
            resized = resized.contiguous(memory_format=torch.channels_last)
        # One tensor stays one.
        made.setdefault(id(tensor), resized)
    return tuple(made[id(tensor)] for tensor in tensors)


def _sizes(tensor: torch.Tensor, declared: Any, which: str) -> Iterator[tuple[int, int]]:
    """Yield each dynamic dimension of an input with its size."""
    for dimension, dim in dimensions(declared):
        if isinstance(dim, torch.export.Dim):
            size = _size(dim, which)
            yield dimension, size if size > 0 else 2 * tensor.shape[dimension]


def _size(dim: torch.export.Dim, which: str) -> int:
    """Return a size of a `torch.export.Dim`; 0 for one without limits."""
    if which == "largest":
        return dim.max if isinstance(dim.max, int) else 0
    if dim.min:
        return dim.min
    # A dimension that is a multiple of another, for instance.
    return dim.fn(LEAST) if hasattr(dim, "fn") else LEAST
