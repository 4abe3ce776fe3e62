"""Builds the models of `executorch_goldens_plugins.compare.calls`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from executorch_goldens.exporting.data import Data, Example
from executorch_goldens_plugins.compare.calls import (
    COMPUTED,
    INPUT,
    PARAMETER,
    SAME,
    CallModel,
    Operand,
    Value,
    operands_in,
)

#: Sizes that a symbolic dimension may have.
LEAST, LARGEST = 1, 64
#: Magnitudes of small and of large values.
TINY, LARGE = 2.0**-13, 2.0**12


def build(model: CallModel, data: Data) -> Example:
    """Return the model and its inputs; its values are its own, and are not filled."""
    tensors = {
        name: _made(name, value, data) for name, value in model.arguments.items() if operands_in(value)
    }
    call = OneCall(model, tensors)
    inputs = call.inputs
    shapes = None
    if model.open is not None:
        # Where the call allows it: some sizes follow from others.
        size = torch.export.Dim.AUTO(min=LEAST, max=LARGEST)
        shapes = ({model.open: size}, *(None for _ in inputs[1:]))
    return Example(call, inputs, fill=False, dynamic_shapes=shapes)


def _made(name: str, value: Any, data: Data) -> list[tuple[Operand, torch.Tensor] | None]:
    """Return the tensors of an argument, with what they are made by."""
    given = value if isinstance(value, list) else [value]
    return [
        (each, tensor(each, f"{name}.{place}", data)) if each is not None else None
        for place, each in enumerate(given)
    ]


def tensor(operand: Operand, name: str, data: Data) -> torch.Tensor:
    """Return the tensor of an operand."""
    shape, dtype = operand.shape, getattr(torch, operand.dtype)
    laid = {"permuted": shape[::-1], "sliced": (*shape[:-1], 2 * shape[-1] + 1) if shape else shape}.get(
        operand.layout, shape
    )
    if operand.layout == "expanded":
        laid = tuple(1 if place == 0 else size for place, size in enumerate(shape))
    values = torch.from_numpy(_values(operand, laid, data.generator(name))).to(dtype)
    if operand.layout == "channels-last":
        return values.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
    return values if operand.held in (INPUT, SAME) else viewed(values, operand.layout, shape)


def viewed(laid: torch.Tensor, layout: str, shape: Sequence[int]) -> torch.Tensor:
    """Return the view of a tensor that an operand is; a program takes no view as its input, and makes it."""
    if layout == "permuted":
        # Dynamo takes ``*range(a, b, c)`` for its three numbers.
        return laid.permute(tuple(range(len(shape)))[::-1])
    if layout == "sliced" and shape:
        return laid[..., 1::2]
    return laid.expand(shape) if layout == "expanded" else laid


def _values(operand: Operand, shape: Sequence[int], generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return float64 of the values that an operand asks for; whole numbers where its dtype has no others."""
    low, high = operand.least, operand.most
    is_whole = not getattr(torch, operand.dtype).is_floating_point
    if is_whole or operand.values == "sixteenths":
        step = 1.0 if is_whole else 1 / 16
        drawn = low + step * generator.integers(0, int((high - low) / step), shape, endpoint=True)
        if operand.values == "equal":
            drawn = np.full(shape, drawn.flat[0] if drawn.size else low)
        elif operand.values == "ends":
            drawn = generator.choice(np.array([low, high]), shape)
        return np.asarray(drawn, np.float64)
    if operand.values == "equal":
        return np.full(shape, float(np.float32(low + (high - low) * generator.random())))
    if operand.values == "ends":
        zeros = [0.0, -0.0] if low <= 0.0 <= high else []
        return np.asarray(generator.choice(np.array([low, high, *zeros]), shape), np.float64)
    scale = {"tiny": TINY, "large": LARGE}.get(operand.values, 1.0)
    bounded = (low, high) != (-2.0, 2.0)
    drawn = low + (high - low) * generator.random(shape)
    if not bounded:
        return np.asarray(drawn * scale)
    # In a range: what is small is near its beginning, and nothing is larger than it.
    return np.asarray(drawn if scale > 1 else max(low, 0.0) + drawn * scale)


#: A function of the first operand, with its shape.
Around = Callable[[torch.Tensor, Sequence[int]], torch.Tensor]


def _rolled(rank: int) -> tuple[int, ...]:
    return (*range(1, rank), 0)


#: What comes before a call, and the input from which that makes an operand.
BEFORE: Mapping[str, tuple[Around, Around]] = {
    "": (lambda x, shape: x, lambda x, shape: x),
    "relu": (lambda x, shape: x, lambda x, shape: functional.relu(x)),
    "mul": (lambda x, shape: x * 2, lambda x, shape: x * 0.5),
    "permute": (
        lambda x, shape: x.permute(x.dim() - 1, *range(x.dim() - 1)).contiguous() if x.dim() else x,
        lambda x, shape: x.permute(_rolled(x.dim())),
    ),
    "reshape": (lambda x, shape: x.reshape(-1), lambda x, shape: x.reshape(shape)),
    "slice": (lambda x, shape: torch.cat((x, x[..., :1]), -1), lambda x, shape: x[..., : shape[-1]]),
    "pad": (lambda x, shape: x[..., :-1].contiguous(), lambda x, shape: functional.pad(x, (0, 1))),
    "cast": (lambda x, shape: x.to(torch.float16), lambda x, shape: x.to(torch.float32)),
    "outside": (lambda x, shape: x, lambda x, shape: torch.fmod(x, 64.0)),
}


class Normalized(torch.nn.Module):
    """A batch norm of results like one: its factors are the model's own, as a pass that folds them wants them."""

    def __init__(self, like: torch.Tensor) -> None:
        super().__init__()
        self.factors = ("mean", "variance", "weight", "bias")
        for name, least in zip(self.factors, (-1, 0.5, 0.25, 0), strict=True):
            self.register_buffer(name, torch.linspace(least, 1, like.shape[1], dtype=like.dtype))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(y, *[getattr(self, name) for name in self.factors])


AFTER: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "": lambda y: y,
    "relu": functional.relu,
    "clamp": lambda y: torch.clamp(y, -0.5, 0.75),
    "add": lambda y: y + 0.5,
    "mul": lambda y: y * y,
    "sigmoid": lambda y: y * torch.sigmoid(y),
    "permute": lambda y: y.permute(_rolled(y.dim())),
    "reshape": lambda y: y.reshape(-1),
    "slice": lambda y: y[..., 1:],
    "cat": lambda y: torch.cat((y, y), -1),
    "sum": lambda y: y.sum(-1, keepdim=True),
    "outside": lambda y: torch.fmod(y, 2.0),
}


class OneCall(torch.nn.Module):
    """One call of an operator, with what is around it.

    Attributes
    ----------
    inputs
        The tensors that it is called with.
    """

    def __init__(
        self, model: CallModel, tensors: Mapping[str, Sequence[tuple[Operand, torch.Tensor] | None]]
    ) -> None:
        super().__init__()
        name, _, overload = model.operator.partition(".")
        self.operator = getattr(getattr(torch.ops.aten, name), overload)
        schema = self.operator._schema.arguments
        given = [each for each in schema if each.name in model.arguments]
        # Up to the first one that is left out.
        self.positional = [
            one.name
            for one, other in zip(given, schema, strict=False)
            if one.name == other.name and not one.kwarg_only
        ]
        self.keywords = [each.name for each in given if each.name not in self.positional]
        self.writes = any(_is_written(each) for each in schema)
        #: What a call in place gives back; a batch norm writes others, and only in training.
        gives_back = any(_is_written(each) for each in self.operator._schema.returns)
        self.written = [each.name for each in schema if gives_back and _is_written(each)]
        types = {each.name: str(each.type) for each in schema}
        self.plain = {
            name: _plain(value, types[name]) for name, value in model.arguments.items() if name not in tensors
        }
        self.names, made = _placed(self, tensors)
        self.computed = {
            f"{name}_{place}"
            for name, every in tensors.items()
            for place, each in enumerate(every)
            if each is not None and each[0].held == COMPUTED
        }
        self.lists = [name for name in tensors if isinstance(model.arguments[name], list)]
        #: Layout and shape of the operands that are inputs; a call without one has its input beside it.
        self.views = [(each.layout, each.shape) for each, _ in made]
        inputs = [value for _, value in made] or [torch.linspace(-1, 1, 6).reshape(2, 3)]
        undo, self.before = BEFORE[model.before]
        if model.before and made:
            layout, shape = self.views[0]
            inputs[0] = undo(viewed(inputs[0], layout, shape), shape).contiguous()
            self.views[0] = ("contiguous", shape)
        self.inputs = tuple(inputs)
        self.after, self.users = AFTER[""], model.users
        if model.after == "batch-norm":
            with torch.no_grad():
                self.after = Normalized(self(*[each.clone() for each in self.inputs])[0])
        elif model.after:
            self.after = AFTER[model.after]

    def forward(
        self,
        first: torch.Tensor,
        second: torch.Tensor | None = None,
        third: torch.Tensor | None = None,
        fourth: torch.Tensor | None = None,
        fifth: torch.Tensor | None = None,
        sixth: torch.Tensor | None = None,
        seventh: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        inputs = [each for each in (first, second, third, fourth, fifth, sixth, seventh) if each is not None]
        given = [viewed(each, *view) for each, view in zip(inputs, self.views, strict=False)]
        if given:
            given[0] = self.before(given[0], self.views[0][1])
        if self.writes:
            given[0] = given[0].clone()
        results = self.call(given)
        if self.users == "chained":
            results = self.call([results[0], *given[1:]])
        further: tuple[torch.Tensor, ...] = ()
        if self.users == "two":
            further = (functional.relu(results[0]),)
        elif self.users == "outside":
            further = (torch.fmod(results[0], 2.0),)
        elif self.users == "operand":
            further = (functional.relu(given[0]),)
        elif self.users == "equal":
            further = self.call(given)
        beside = () if given else (first + 1,)
        # What a batch norm saves for training is empty.
        others = [each for each in (*results[1:], *further) if each.numel()]
        return (self.after(results[0]), *others, *beside)

    def call(self, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the tensors that the operator gives."""
        arguments = dict(self.plain)
        for name, places in self.names.items():
            made = [given[place] if isinstance(place, int) else self._own(place) for place in places]
            if name in self.written and isinstance(places[0], str):
                # A program starts without the values of a buffer that it writes.
                made = [None if each is None else each.clone() for each in made]
            arguments[name] = made if name in self.lists else made[0]
        result = self.operator(
            *[arguments[name] for name in self.positional],
            **{name: arguments[name] for name in self.keywords},
        )
        several = result if isinstance(result, tuple | list) else (result,)
        return tuple(torch.view_as_real(each) if each.is_complex() else each for each in several)

    def _own(self, name: str | None) -> torch.Tensor | None:
        """Return what holds an operand that is no input."""
        if name is None:
            return None
        held: torch.Tensor = getattr(self, name)
        return held * 0.5 if name in self.computed else held


def _placed(
    holder: torch.nn.Module, tensors: Mapping[str, Sequence[tuple[Operand, torch.Tensor] | None]]
) -> tuple[dict[str, list[str | int | None]], list[tuple[Operand, torch.Tensor]]]:
    """Return where the tensors of each argument are, an input's number or an attribute's name, and the inputs."""
    names: dict[str, list[str | int | None]] = {}
    inputs: list[tuple[Operand, torch.Tensor]] = []
    last: str | int | None = None
    shape: tuple[int, ...] = ()
    for argument, made in tensors.items():
        for number, each in enumerate(made):
            # Of another shape it is no operand for this argument.
            if each is not None and not (
                each[0].held == SAME and last is not None and each[0].shape == shape
            ):
                operand, value = each
                shape = operand.shape
                if operand.held in (INPUT, SAME):
                    last = len(inputs)
                    inputs.append(each)
                else:
                    last = f"{argument}_{number}"
                    if operand.held in (PARAMETER, COMPUTED) and value.is_floating_point():
                        setattr(holder, last, torch.nn.Parameter(value, requires_grad=False))
                    else:
                        holder.register_buffer(last, value)
            names.setdefault(argument, []).append(last if each is not None else None)
    return names, inputs


def _is_written(argument: torch.Argument) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _plain(value: Value, type_: str) -> Any:
    """Return an argument that is no tensor, as an operator takes it: a dtype and a memory format by its name."""
    return getattr(torch, value) if isinstance(value, str) and "str" not in type_ else value
