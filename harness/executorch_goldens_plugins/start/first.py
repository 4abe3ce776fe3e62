"""Runs a model of a repository once, to find out whether it can be a case."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from executorch_goldens.errors import placed
from executorch_goldens.exporting.data import in_mode
from executorch_goldens.files.wording import type_of
from executorch_goldens.zoo.registry import ZooError
from executorch_goldens_plugins.start.model import Input, ModelName


def built(folder: Path, model: ModelName) -> tuple[torch.nn.Module, bool]:
    """Import a model of a folder and make it twice without arguments; raise ZooError.

    Returns
    -------
    tuple[torch.nn.Module, bool]
        The model in eval mode, and whether it has the same parameters each time it is made, as from a checkpoint.
    """
    make = _imported(folder, model)
    # Random numbers are drawn from another seed each time.
    module, again = (_made(make, model, folder, seed) for seed in (0, 1))
    other = again.state_dict()
    return in_mode(module), all(
        torch.equal(value, other[name]) for name, value in module.state_dict().items()
    )


def named(module: torch.nn.Module, inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Return inputs with the names that the model has for them, after a run on such; raise ZooError."""
    names = list(inspect.signature(module.forward).parameters)
    names += [f"input_{number}" for number in range(len(names), len(inputs))]
    try:
        with torch.no_grad():
            module(*(torch.zeros(each.shape, dtype=getattr(torch, each.dtype)) for each in inputs))
    except Exception as error:
        raise ZooError(
            f"the model does not run on {' '.join(map(str, inputs)) or 'no input'}: {type(error).__name__}: {error}; "
            "pass an --input for each argument of its forward"
        ) from error
    return tuple(replace(each, name=name) for each, name in zip(inputs, names, strict=False))


def _imported(folder: Path, model: ModelName) -> Callable[[], Any]:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    imported = _tried(lambda: importlib.import_module(model.module), model, folder)
    # One that was imported before, or that a module of Python's own or an installed package hides.
    if (where := getattr(imported, "__file__", None)) is None or not (folder / model.file).samefile(where):
        raise ZooError(
            f"{model.file} cannot be imported: {model.module} is {where or 'a module of Python'}; rename the file"
        )
    found: Callable[[], Any] | None = getattr(imported, model.name, None)
    if found is None:
        own = [
            each for each, value in vars(imported).items() if getattr(value, "__module__", "") == model.module
        ]
        has = f"; it has {', '.join(own)}" if own else ""
        raise ZooError(f"{model.file} has no {model.name}{has}: name one, as FILE:NAME")
    return found


def _made(make: Callable[[], Any], model: ModelName, folder: Path, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    made = _tried(make, model, folder)
    if not isinstance(made, torch.nn.Module):
        raise ZooError(f"{model} returns {type_of(made)}, and no torch.nn.Module")
    return made


def _tried(make: Callable[[], Any], model: ModelName, folder: Path) -> Any:
    try:
        return make()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        way_out = "name a class or a function that needs no arguments, as FILE:NAME"
        if isinstance(error, ModuleNotFoundError):
            way_out = (
                f'if the model needs it beside ExecuTorch, write requirements = ["{error.name}"] under '
                "[tool.goldens.environment] in pyproject.toml, and begin again"
            )
        raise ZooError(f"{model} cannot be called from {folder}: {placed(error)}; {way_out}") from error
