"""Measures how far rounding alone may move the outputs of a model.

The (quantized) eager graph is run a few times more, with every rounding in it moved by what a target's arithmetic may
move it: a floating result by units in its last place, a quantization by a part of a code before it rounds. How far each
element of an output goes is its tolerance. This is Monte Carlo arithmetic (Parker 1997; verificarlo and CADNA do it to
programs), applied to ATen's operators.

Only what follows from an input is moved. Constants, and what hands inputs on, stay exact: their tolerance is zero. An
output that follows from parameters and buffers alone may be computed when the program runs: there, what follows from
these is moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._decomp import decomposition_table
from torch._ops import HigherOrderOperator
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from executorch_goldens.artifact import Tensor
from executorch_goldens.decode.difference import distances
from executorch_goldens.exporting.blame import judging
from executorch_goldens.exporting.eager import FLOAT8, is_float8
from executorch_goldens.exporting.numerics import narrow
from executorch_goldens.exporting.numerics.arithmetic import (
    APPROXIMATED,
    ARITHMETIC,
    CODES,
    DYNAMIC_CODES,
    FORMULAS,
    INT16_CODES,
    MANY,
    REDUCTIONS,
    SUMS,
    SUMS_OF_FLOAT8,
    Approximations,
    error_in_order,
    floating,
    kind_of,
    step_of_sum,
)
from executorch_goldens.exporting.numerics.programs import Steps, flatten, given_by, keeping
from executorch_goldens.exporting.undefined import Undefined, leaves, run_nested
from executorch_goldens.numerics.tolerances import TOUCHED

#: Where every rounding goes in one run: all up, all down, or each its own way. Lowering may round all ties the other
#: way, which no run at random shows.
RUNS: Sequence[float | None] = (1.0, -1.0, None, None)

#: States of a value on its way from an input: nothing that changes a number; it was codes, and is their numbers;
#: it was rounded.
GIVEN, CODED, ROUNDED = range(3)

#: Codes are whole numbers; what float32 leaves of them is this near.
WHOLE = 2.0**-12


@dataclass(frozen=True)
class _Call:
    """A call of an operator.

    Attributes
    ----------
    name
        Name of the operator, without its overload.
    state
        State of its input value, the furthest of several: `GIVEN`, `CODED` or `ROUNDED`.
    """

    func: Any
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    state: int

    def run(self) -> Any:
        return self.func(*self.args, **self.kwargs)


class Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, every rounding of values that depend on `inputs` is moved.

    Parameters
    ----------
    inputs
        The inputs of the model.
    direction
        Direction of all moves; None for each its own, drawn from `generator`.
    off
        The `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS` that the backend has.
    kernels
        Operators that the program leaves to kernels which add up in a narrow type; see `narrow.outside`.
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        inputs: Sequence[torch.Tensor],
        direction: float | None,
        generator: np.random.Generator,
        off: Approximations,
        kernels: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.direction = direction
        self.generator = generator
        self.off = off
        self.kernels = kernels
        #: Tensors that depend on an input, with their state.
        self.state: MutableMapping[torch.Tensor, int] = WeakIdKeyDictionary()
        #: The same of memory that was written into, by its address: other tensors may be views of it. What is held
        #: here keeps its address.
        self.written: dict[int, tuple[torch.UntypedStorage, int]] = {}
        for tensor in inputs:
            self.state[tensor] = GIVEN

    def is_rounded(self, tensor: torch.Tensor) -> bool:
        """Return whether `tensor` depends on an input and was rounded on its way."""
        return self._state_of(tensor) == ROUNDED

    def _state_of(self, tensor: torch.Tensor) -> int | None:
        found = [self.state[tensor]] if tensor in self.state else []
        if self.written and (memory := self.written.get(tensor.untyped_storage().data_ptr())):
            found.append(memory[1])
        return max(found, default=None)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run `func`, and move its result if it follows from an input."""
        if isinstance(func, HigherOrderOperator):
            return run_nested(self, func, args, kwargs or {})
        tensors = leaves((args, kwargs), torch.Tensor)
        states = [state for state in map(self._state_of, tensors) if state is not None]
        call = _Call(func, func.overloadpacket.__name__, args, kwargs or {}, max(states, default=GIVEN))
        if not states:
            return call.run()
        if call.name in SUMS_OF_FLOAT8 and any(map(is_float8, args)):
            return self._sum_of_float8(call)
        if call.name in self.kernels and any(getattr(x, "dtype", None) in narrow.NARROW for x in args):
            return self._sum_in_narrow_type(call)
        return HANDLERS[kind_of(func)](self, call)

    def _exact(self, call: _Call) -> Any:
        """Run an operator that chooses, moves or compares."""
        return self._noted(call, call.run(), CODED if call.name.startswith("dequantize_") else GIVEN)

    def _quantize(self, call: _Call) -> Any:
        """Run an operator that rounds to codes, on a value that is moved by a part of a code."""
        value, scale = call.args[:2]
        if call.name == "quantize_per_channel":
            with self:
                scale = _along_axis(value, scale, call.args[3])
        if self._is_exact(value, scale, call.name):
            return self._noted(call, call.run(), GIVEN)
        moved = self._before_quantizing(value, scale, call.name, call.args[-1])
        return self._noted(call, call.func(moved, *call.args[1:], **call.kwargs), ROUNDED)

    def _sum(self, call: _Call) -> Any:
        """Run an operator that sums, and move the result by the rounding of its partial sums."""
        result = _sum_of_float16(call.func, call.args, call.kwargs)
        for made in _movable(result):
            self._move(made, self._error_of_sum(call, made), call.name)
            self._approximate(call, made)
        return self._noted(call, result)

    def _approximated(self, call: _Call) -> Any:
        """Run an operator that rounds once, and move the result by units in its last place."""
        result = call.run()
        for made in _movable(result):
            self._move(made, made.abs(), call.name)
            self._approximate(call, made)
        return self._noted(call, result)

    def _formula(self, call: _Call) -> Any:
        """Compute an operator in the steps that targets take, and move each."""
        given = floating(call.args[0])
        self.state[given] = call.state
        with self:
            result = FORMULAS[call.name](given)
        self._approximate(call, result)
        return result

    def _decomposed(self, call: _Call) -> Any:
        """Run the operators of torch's decomposition, or of a composite one, and move each."""
        composed = (
            call.func.decompose if kind_of(call.func) == "composite" else decomposition_table[call.func]
        )
        with self:
            result = composed(*call.args, **call.kwargs)
        # A decomposition may cover some arguments only: that of an adaptive pool, sizes that are multiples.
        return self._approximated(call) if result is NotImplemented else result

    def _approximate(self, call: _Call, made: torch.Tensor) -> None:
        """Move a result by the error of the backend's approximation of the operator."""
        if call.name in self.off:
            made += self._draw(made) * self.off[call.name](floating(call.args[0]))

    def _noted(self, call: _Call, result: Any, own: int | None = None) -> Any:
        """Record the state of each tensor of a result, and return the result.

        Parameters
        ----------
        own
            The operator's own effect on numbers; by default it rounds floating results.
        """
        for made in leaves(result, torch.Tensor):
            does = (ROUNDED if made.dtype.is_floating_point else GIVEN) if own is None else own
            self.state[made] = max(call.state, does, self.state.get(made, GIVEN))
            if call.func._schema.is_mutable:
                storage = made.untyped_storage()
                self.written[storage.data_ptr()] = storage, self.state[made]
        return result

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and self._state_of(value) is not None

    def _error_of_sum(self, call: _Call, made: torch.Tensor) -> torch.Tensor:
        """Return the sizes of the terms of each element of `made`, added up in kind: relative to it, its units."""
        positive = [floating(x).abs() if isinstance(x, torch.Tensor) else x for x in call.args]
        total = _sum_of_float16(call.func, positive, call.kwargs)
        # Of n roundings at random: sqrt(n) of one (Higham and Mary 2019). Kernels add up in float32 at least.
        eps = torch.finfo(made.dtype).eps
        finer = torch.finfo(torch.float32).eps / eps
        number = SUMS[call.name](made, *call.args)
        error: torch.Tensor = made.abs() + total * (finer * math.sqrt(number))
        if call.name in REDUCTIONS and number >= MANY:
            error = torch.maximum(error, error_in_order(call.name, made, *call.args).to(error.dtype) / eps)
        return error

    def _sum_of_float8(self, call: _Call) -> torch.Tensor:
        """Return a sum of float8 whose terms were added up in float16, if that rounds any of them."""
        terms = [x.float() if is_float8(x) else x for x in call.args]
        made: torch.Tensor = call.func(*terms, **call.kwargs)
        positive = (x.abs() if isinstance(x, torch.Tensor) else x for x in terms)
        total = call.func(*positive, **call.kwargs)
        number = SUMS_OF_FLOAT8[call.name](made, *call.args)
        eps = torch.finfo(torch.float16).eps
        # float16 has all multiples of a step up to 2 / eps of them.
        if total.numel() and float(total.max()) > step_of_sum(call.name, terms, number) * 2.0 / eps:
            made += self._draw(made) * (eps * (made.abs() + total * math.sqrt(number)))
        rounded = made.to(next(x.dtype for x in call.args if is_float8(x)))
        self.state[rounded] = ROUNDED
        return rounded

    def _sum_in_narrow_type(self, call: _Call) -> torch.Tensor:
        """Return what the runtime's kernel gives, which adds up in the type of its terms, moved by a unit."""
        made = narrow.KERNELS[call.name](*call.args, **call.kwargs)
        self._move(made, made.abs(), call.name)
        self._noted(call, made)
        return made

    def _move(self, made: torch.Tensor, size: torch.Tensor, name: str) -> None:
        # Dtypes narrower than float32 are computed in that, and rounded once; for other kernels see `narrow`.
        is_exact = name in ARITHMETIC or name in SUMS or made.itemsize < 4
        units = 1.0 if is_exact else APPROXIMATED
        size = torch.where(size.isfinite(), size, 0.0)
        limits = torch.finfo(made.dtype)
        wide = torch.promote_types(made.dtype, torch.float32)
        unit = size.to(wide) * limits.eps
        if name not in ARITHMETIC and name not in SUMS:
            # The units of the smallest numbers are all the same. What is zero is so exactly.
            least = limits.smallest_normal * limits.eps
            unit = torch.where(size != 0, unit.clamp(min=least), 0.0)
        made.copy_(made.to(wide) + self._draw(made) * (unit * units))

    def _is_chosen_again(self, scale: Any, name: str) -> bool:
        return name == "quantize_per_token" or scale in self

    def _is_exact(self, value: torch.Tensor, scale: Any, name: str) -> bool:
        """Return whether both sides quantize the same value by the same scale, or use codes already."""
        state = self._state_of(value) or GIVEN
        if self._is_chosen_again(scale, name) or state == ROUNDED:
            return False
        codes = value / scale if name in ("quantize_per_tensor", "quantize_per_channel") else value
        return state == GIVEN or bool(((codes - codes.round()).abs() < WHOLE).all())

    def _before_quantizing(self, value: torch.Tensor, scale: Any, name: str, dtype: Any) -> torch.Tensor:
        chosen_again = self._is_chosen_again(scale, name)
        codes = DYNAMIC_CODES if chosen_again else INT16_CODES if dtype is torch.int16 else CODES
        # Scales that are chosen again are float64.
        moved: torch.Tensor = (value + self._draw(value) * (codes * scale)).to(value.dtype)
        return moved

    def _draw(self, like: torch.Tensor) -> torch.Tensor | float:
        if self.direction is not None:
            return self.direction
        drawn = self.generator.random(tuple(like.shape), np.float32)
        return torch.from_numpy(np.asarray(drawn)) * 2.0 - 1.0


#: Runner of an operator, by `executorch_goldens.exporting.numerics.arithmetic.kind_of`.
HANDLERS: Mapping[str, Callable[[Rounding, _Call], Any]] = {
    "exact": Rounding._exact,
    "quantize": Rounding._quantize,
    "sum": Rounding._sum,
    "approximated": Rounding._approximated,
    "formula": Rounding._formula,
    "decomposed": Rounding._decomposed,
    "composite": Rounding._decomposed,
}


def _movable(result: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a result that are rounded by the backend and by eager each in its own way."""
    for made in leaves(result, torch.Tensor):
        # Casts to float8 round alike on both sides, and no other operator gives it.
        if made.is_floating_point() and made.dtype not in FLOAT8:
            yield made


def _sum_of_float16(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of `func`, which sums; float16 inputs are summed in float32 and rounded once.

    Without oneDNN torch multiplies matrices of float16 a hundred times slower than those of float32.
    """
    halves = [isinstance(x, torch.Tensor) and x.dtype is torch.float16 for x in args]
    if not any(halves) or kwargs.get("dtype") is not None:
        return func(*args, **kwargs)
    wide = [x.float() if half else x for x, half in zip(args, halves, strict=True)]
    return pytree.tree_map_only(torch.Tensor, torch.Tensor.half, func(*wide, **kwargs))


def _along_axis(value: torch.Tensor, scales: torch.Tensor, axis: int) -> torch.Tensor:
    """Return `scales`, one for each place along `axis` of `value`, in a shape that broadcasts to its."""
    shape = [1] * value.dim()
    shape[axis] = -1
    return scales.reshape(shape)


def distance(moved: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return how far rounding moved each element of a value that it touches: more than nothing.

    Where eager gives no number nothing is compared; where a moved run gives none, anything may come.
    """
    far = np.nan_to_num(distances(moved, expected), nan=np.inf)
    return np.maximum(np.where(np.isfinite(expected), far, 0.0), TOUCHED)


@dataclass(frozen=True)
class Moved:
    """The distances that rounding alone moves the outputs of a model.

    Attributes
    ----------
    spreads, shifts
        See `executorch_goldens.artifact.Sample`.
    undefined, beyond
        See `executorch_goldens.exporting.undefined.Undefined`.
    """

    spreads: tuple[Tensor, ...]
    shifts: tuple[float, ...]
    undefined: tuple[str, ...]
    beyond: tuple[str, ...]


def moved(
    model: torch.nn.Module,
    steps: Steps,
    scales: Sequence[float],
    generator: np.random.Generator,
    off: Approximations,
    kernels: frozenset[str] = frozenset(),
) -> Moved:
    """Return how far rounding alone moves each element of each output of a model, and each output on average.

    With several steps: of the outputs of the last.

    Parameters
    ----------
    model
        The (quantized) eager graph. Its buffers are left as they are.
    scales
        See `executorch_goldens.artifact.Lowered`.
    kernels
        See `Rounding`.
    """
    distances = _Distances(model, steps, off, kernels)
    for direction in RUNS:
        distances.move(direction, generator)
    distances.take_scales(scales)
    if distances.constant:
        # Other draws than those of the case: they stay what they are.
        (apart,) = generator.spawn(1)
        for direction in RUNS:
            distances.move_constant(direction, apart)
    return Moved(
        tuple(Tensor.from_array(each.astype(np.float32)) for each in distances.furthest),
        tuple(distances.shifts),
        tuple(distances.looked.undefined),
        tuple(distances.looked.beyond),
    )


class _Distances:
    """Distances that rounding moves the outputs of a model, over all runs so far.

    Attributes
    ----------
    looked
        Inputs of the model's operators for which these are undefined.
    expected
        The outputs with no rounding moved.
    furthest
        Per output, how far each element went.
    shifts
        Per output, how far its mean went.
    constant
        Indices of the outputs that follow from no input. What is no tensor is never rounded, and none of them.
    """

    def __init__(
        self, model: torch.nn.Module, steps: Steps, off: Approximations, kernels: frozenset[str]
    ) -> None:
        self.model = model
        self.steps = steps
        self.off = off
        self.kernels = kernels
        # Not what the model gives that the graph was made of: where the graph differs, that is no rounding.
        with torch.no_grad(), keeping(model.buffers()), Undefined() as looked:
            self.expected = flatten(given_by(model, self._inputs()))
        self.looked = looked
        self.furthest = [np.zeros(tensor.shape) for tensor in self.expected]
        self.shifts = [0.0] * len(self.expected)
        self.constant = {index for index, tensor in enumerate(self.expected) if not tensor.kind}

    def move(self, direction: float | None, source: np.random.Generator) -> None:
        """Run the model once, with every rounding moved of values that depend on an input."""
        given, outputs, rounding = self._run(direction, source, ())
        for index, (value, made) in enumerate(zip(given, outputs, strict=True)):
            self._note(index, value, made, rounding)
            if made.shape == self.expected[index].shape and value in rounding:
                self.constant.discard(index)

    def move_constant(self, direction: float | None, source: np.random.Generator) -> None:
        """Run the model once, with every rounding moved, also of parameters and buffers: only `constant` counts."""
        states = [*self.model.parameters(), *self.model.buffers()]
        given, outputs, rounding = self._run(direction, source, states)
        for index in self.constant:
            self._note(index, given[index], outputs[index], rounding)

    def take_scales(self, scales: Sequence[float]) -> None:
        """Allow quantized outputs that depend on no input to move by one code."""
        for index, scale in enumerate(scales):
            if index in self.constant and scale:
                self.furthest[index].fill(scale)
                self.constant.discard(index)

    @judging
    def _run(
        self, direction: float | None, source: np.random.Generator, states: Sequence[torch.Tensor]
    ) -> tuple[Sequence[Any], Sequence[Tensor], Rounding]:
        """Return the model's outputs with every rounding moved of values that depend on its inputs and `states`."""
        own = self._inputs()
        given_to = [*pytree.tree_leaves(own), *states]
        with torch.no_grad(), keeping(self.model.buffers()):
            with Rounding(given_to, direction, source, self.off, self.kernels) as rounding:
                given = given_by(self.model, own)
            # An output may be a buffer itself.
            return given, flatten(given), rounding

    def _note(self, index: int, value: Any, made: Tensor, rounding: Rounding) -> None:
        right = self.expected[index]
        if made.shape != right.shape:
            # Rounding decides of the shape.
            self.furthest[index].fill(np.inf)
        elif value in rounding and rounding.is_rounded(value):
            self.furthest[index] = np.maximum(self.furthest[index], distance(made.array(), right.array()))
            self.shifts[index] = max(self.shifts[index], _shift(made.wide(), right.wide()))

    def _inputs(self) -> list[list[Any]]:
        return [[x.clone() for x in inputs] for inputs in self.steps]


def _shift(made: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Return how far the mean of the elements that are finite in both was moved."""
    finite = np.isfinite(made) & np.isfinite(expected)
    return float(np.abs((made[finite] - expected[finite]).mean())) if finite.any() else 0.0
