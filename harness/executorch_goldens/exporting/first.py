"""Runs a model of a repository once, to find out whether it can be a case, and with which inputs."""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from executorch_goldens.exporting.data import in_mode
from executorch_goldens.files.wording import type_of
from executorch_goldens.registry import ZooError
from executorch_goldens.starting.inputs import FLOATS, Input

#: Extents of an image, a signal or a volume that are tried, the smallest first.
EXTENTS = (32, 64, 224)
#: Length of a sequence of indices that is tried.
LENGTH = 16


@dataclass(frozen=True)
class Built:
    """A model that was made as a case would make it.

    Attributes
    ----------
    module
        In eval mode.
    inputs
        The second value that was returned; None without one.
    has_own_weights
        Whether it has the same parameters each time it is made: a checkpoint's for instance.
    entry
        Where a checkpoint has the state: the key of its entry, empty where it is the state itself.
    """

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...] | None = None
    has_own_weights: bool = True
    entry: str = ""


@dataclass(frozen=True)
class Guess:
    """An input that a model runs on.

    Attributes
    ----------
    layer
        The layer that it is guessed from, in words.
    """

    given: Input
    layer: str


def built(folder: Path, module: str, name: str, checkpoint: Path | None = None) -> Built:
    """Import `name` from `module`, call it without arguments, and return its result; raise ZooError.

    Parameters
    ----------
    checkpoint
        A file of ``torch.save`` with the state of the model, read without unpickling anything but tensors.
    """
    make = _imported(folder, module, name)
    torch.manual_seed(0)
    made, inputs = _made(make, f"{module}.{name}()", folder)
    if checkpoint is not None:
        return Built(in_mode(made), inputs, True, _load(made, checkpoint))
    # Random numbers are drawn from another seed.
    torch.manual_seed(1)
    again, _ = _made(make, f"{module}.{name}()", folder)
    return Built(in_mode(made), inputs, _is_same(made.state_dict(), again.state_dict()))


def example(folder: Path, module: str, name: str) -> tuple[torch.Tensor, ...]:
    """Return the example inputs that a function makes; raise ZooError."""
    make = _imported(folder, module, name)
    try:
        given = make()
    except Exception as error:
        raise ZooError(f"{module}.{name}() fails: {type(error).__name__}: {error}") from error
    return _as_inputs(given, f"{module}.{name}()")


def require_runs(model: torch.nn.Module, inputs: Sequence[torch.Tensor], shown: str) -> None:
    """Raise ZooError unless a model runs on some inputs.

    Parameters
    ----------
    shown
        The inputs, in words.
    """
    try:
        with torch.no_grad():
            model(*inputs)
    except Exception as error:
        raise ZooError(
            f"the model does not run on {shown}: {type(error).__name__}: {error}; give an --input for each argument "
            "of its forward, or --example MODULE:FUNCTION"
        ) from error


def named(model: torch.nn.Module, inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Return inputs with the names that the model has for them, after a run on such; raise ZooError."""
    names = _inputs(model)
    names += [f"input_{number}" for number in range(len(names), len(inputs))]
    shown = " ".join(each.stated for each in inputs)
    require_runs(model, [_zeros(each) for each in inputs], f"inputs of shape {shown}")
    tables = [layer.num_embeddings for layer in model.modules() if isinstance(layer, torch.nn.Embedding)]
    below = min(tables, default=Input.below)
    return tuple(
        replace(each, name=name, below=below if each.dtype.startswith("int") else Input.below)
        for each, name in zip(inputs, names, strict=False)
    )


def guessed(model: torch.nn.Module) -> Guess | None:
    """Return an input that a model of one input runs on, from the layer that it begins with, or None."""
    if len(_inputs(model)) != 1:
        return None
    for guess in itertools.islice(_candidates(model), len(EXTENTS)):
        try:
            require_runs(model, [_zeros(guess.given)], guess.given.stated)
        except ZooError:
            continue
        return guess
    return None


def _imported(folder: Path, module: str, name: str) -> Callable[[], Any]:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            raise ZooError(f"there is no module {module} in {folder}: name one of yours") from error
        raise _uncallable(f"{module}.{name}()", folder, error) from error
    found: Callable[[], Any] | None = getattr(imported, name, None)
    if found is None:
        own = [each for each, value in vars(imported).items() if getattr(value, "__module__", "") == module]
        has = f"; it has {', '.join(own)}" if own else ""
        raise ZooError(f"{module.replace('.', '/')}.py has no {name}{has}: name one, as FILE:NAME")
    return found


def _made(
    make: Callable[[], Any], called: str, folder: Path
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...] | None]:
    """Return the model that a call makes, with the inputs that it returns beside it."""
    try:
        given = make()
    except Exception as error:
        raise _uncallable(called, folder, error) from error
    if isinstance(given, torch.nn.Module):
        return given, None
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], torch.nn.Module):
        return given[0], _as_inputs(given[1], f"the second value that {called} returns")
    raise ZooError(f"{called} is {type_of(given)}, and no torch.nn.Module")


def _uncallable(called: str, folder: Path, error: Exception) -> ZooError:
    way_out = "name a class or a function that needs no arguments, as FILE:NAME"
    if isinstance(error, ModuleNotFoundError):
        way_out = (
            f'if the model needs it beside ExecuTorch, write requirements = ["{error.name}"] under '
            "[tool.goldens.environment] in pyproject.toml, and begin again"
        )
    return ZooError(f"{called} cannot be called from {folder}: {type(error).__name__}: {error}; {way_out}")


def _as_inputs(given: object, what: str) -> tuple[torch.Tensor, ...]:
    if not isinstance(given, tuple | list) or not all(isinstance(each, torch.Tensor) for each in given):
        raise ZooError(f"{what} is {type_of(given)}, and no tuple of tensors, one for each argument")
    return tuple(given)


def _load(model: torch.nn.Module, checkpoint: Path) -> str:
    """Load a state into a model; return the key of the entry that has it."""
    try:
        held = torch.load(checkpoint, map_location="cpu", weights_only=True)  # noqa: TID251 - tensors alone
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise ZooError(
            f"{checkpoint} is no checkpoint that is read without running code of it: {type(error).__name__}: {first}; "
            "save the model's state_dict() with torch.save"
        ) from error
    within = held.items() if isinstance(held, Mapping) else ()
    entries = {"": held, **{key: each for key, each in within if isinstance(key, str)}}
    errors = []
    for key, state in entries.items():
        if isinstance(state, Mapping):
            try:
                model.load_state_dict(state)
            except Exception as error:
                errors.append(" ".join(str(error).split()))
            else:
                return key
    why = errors[0] if errors else f"it holds a {type(held).__name__}"
    raise ZooError(f"{checkpoint} has no state of this model: {why:.300}")


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(value, other[name]) for name, value in one.items() if isinstance(value, torch.Tensor)
    )


def _inputs(model: torch.nn.Module) -> list[str]:
    """Return the names of the arguments that the model needs."""
    parameters = inspect.signature(model.forward).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in positional and each.default is each.empty]


def _candidates(model: torch.nn.Module) -> Iterator[Guess]:
    for name, layer in model.named_modules():
        words = f"the layer {name or 'itself'} ({type(layer).__name__})"
        weight = getattr(layer, "weight", None)
        dtype = str(getattr(weight, "dtype", "float32")).removeprefix("torch.")
        dtype = dtype if dtype in FLOATS else "float32"
        if isinstance(layer, torch.nn.Embedding):
            yield Guess(Input((1, LENGTH), "int64"), words)
            return
        if isinstance(layer, torch.nn.Linear):
            yield Guess(Input((1, layer.in_features), dtype), words)
            return
        if isinstance(layer, torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Conv3d):
            for extent in EXTENTS:
                shape = (1, layer.in_channels, *(extent,) * len(layer.kernel_size))
                yield Guess(Input(shape, dtype), words)
            return


def _zeros(given: Input) -> torch.Tensor:
    return torch.zeros(given.shape, dtype=getattr(torch, given.dtype))
