"""Runs a model of a repository once, to find out whether it can be a case, and with which inputs."""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from executorch_goldens.exporting.data import in_mode
from executorch_goldens.registry import ZooError

#: Extents of an image, a signal or a volume that are tried, the smallest first.
EXTENTS = (32, 64, 224)

Shapes = Mapping[str, tuple[int, ...]]


def built(folder: Path, module: str, name: str) -> torch.nn.Module:
    """Import `name` from `module`, call it without arguments, and return the model in eval mode; raise ZooError."""
    sys.path.insert(0, str(folder))
    try:
        made = getattr(importlib.import_module(module), name)()
    except Exception as error:
        raise ZooError(
            f"{module}.{name}() cannot be called from {folder}: {type(error).__name__}: {error}; "
            "name a class or a function that needs no arguments, as FILE:NAME"
        ) from error
    if not isinstance(made, torch.nn.Module):
        raise ZooError(f"{module}.{name}() is a {type(made).__name__}, and no torch.nn.Module")
    return in_mode(made)


def named(model: torch.nn.Module, shapes: Sequence[tuple[int, ...]]) -> Shapes:
    """Return the shapes by the name of the model's input, after a run on such inputs; raise ZooError."""
    names = _inputs(model)
    if len(names) < len(shapes):
        names += [f"input_{number}" for number in range(len(names), len(shapes))]
    try:
        _run(model, shapes)
    except Exception as error:
        shown = " ".join(",".join(map(str, shape)) for shape in shapes)
        raise ZooError(
            f"the model does not run on inputs of shape {shown}: {type(error).__name__}: {error}; "
            "give the shapes with --input, one for each argument of its forward"
        ) from error
    return dict(zip(names, shapes, strict=False))


def guessed(model: torch.nn.Module) -> tuple[int, ...] | None:
    """Return a shape that a model of one input runs on, from the layer that it begins with, or None."""
    if len(_inputs(model)) != 1:
        return None
    for shape in itertools.islice(_candidates(model), len(EXTENTS)):
        try:
            _run(model, [shape])
        except Exception:
            continue
        return shape
    return None


def _inputs(model: torch.nn.Module) -> list[str]:
    """Return the names of the arguments that the model needs."""
    parameters = inspect.signature(model.forward).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in positional and each.default is each.empty]


def _candidates(model: torch.nn.Module) -> Iterator[tuple[int, ...]]:
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            yield (1, layer.in_features)
            return
        if isinstance(layer, torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Conv3d):
            yield from ((1, layer.in_channels, *(extent,) * len(layer.kernel_size)) for extent in EXTENTS)
            return


def _run(model: torch.nn.Module, shapes: Sequence[tuple[int, ...]]) -> None:
    with torch.no_grad():
        model(*(torch.zeros(shape) for shape in shapes))
