"""The deterministic weights and inputs of cases.

Everything numeric in a case comes from numpy's PCG64, keyed by the case's name and the tensor's name, so that no torch
release, platform or import order can change it. Values are small dyadic rationals (a small integer over a power of
two): float32 sums and products of them are exact in any order, so that no vectorised kernel can round differently from
another.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from executorch_goldens.artifact import Metric, Tensor
from executorch_goldens.exporting.arrays import PACKED, array_of
from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.exporting.calls import TENSOR, CallSpec, require_leaves, tensors_in
from executorch_goldens.exporting.recorded import Inputs, folder_of
from executorch_goldens.files.wording import type_of
from executorch_goldens.zoo.registry import Case, ZooError
from executorch_goldens.zoo.targets import Target

#: The outputs of a program as a metric takes them: by name of the sample, in their order.
Outputs = Mapping[str, Sequence[np.ndarray[Any, Any]]]
#: The same as the harness has them.
Results = Mapping[str, Sequence[Tensor]]

#: Weights are k / 2**n with k in -8..8: few enough significant bits that the sums of a convolution over small
#: dyadic inputs need less than float32's 24, enough distinct values that a misplaced one shows.
WEIGHT_BITS = 3

#: Drawn values are multiples of this beyond the smallest.
STEP = 1 / 16
#: Binary digits of the number of steps in the narrowest and in the widest range: where `STEP` would leave almost no
#: values, and where numbers of float32's precision have no such digits any more.
FEWEST_STEPS, MOST_STEPS = 4, 24
#: The smallest of this many values or more is rounded up to a part of a step: added one after another, values that all
#: end in the same bits round the same way each time, further than a tolerance reaches.
MANY, PARTS = 4096, 8


def fan_in_bits(fan_in: int) -> int:
    """Return n such that weights uniform in -2**-n..2**-n keep activations near the size of the inputs.

    The standard deviation of such a weight is ``2**-n / sqrt(3)``; a sum over `fan_in` of them gains between
    0.6 and 1.6 (about 1 with a ReLU after it), so that stacks neither saturate nor fade.

    >>> [fan_in_bits(n) for n in (1, 4, 9, 27, 64, 144)]
    [0, 0, 1, 1, 2, 3]
    """
    return max(0, (fan_in.bit_length() - 2) // 2)


@dataclass(frozen=True)
class Data:
    """Deterministic tensors for one case.

    Attributes
    ----------
    case
        Name of the case; part of the key of every tensor.
    """

    case: str

    @handed_on
    def generator(self, name: str) -> np.random.Generator:
        """Return the PCG64 generator keyed by ``<case>/<name>`` (SHA-256 of the key, first 16 bytes)."""
        key = hashlib.sha256(f"{self.case}/{name}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(key[:16], "little")))

    @handed_on
    def tensor(self, name: str, *shape: int, bits: int = 4, limit: int = 16) -> torch.Tensor:
        """Return float32 values k / 2**bits with k uniform over the integers -limit..limit.

        Parameters
        ----------
        name
            Name of the input or parameter within the case.
        shape
            Shape of the tensor; empty for a scalar.
        bits
            Binary digits after the point.
        limit
            Largest absolute numerator; the largest absolute value is ``limit / 2**bits``.
        """
        numerators = self.generator(name).integers(-limit, limit, size=shape, endpoint=True)
        return torch.from_numpy(np.asarray(numerators / 2.0**bits, dtype=np.float32))

    def like(self, name: str, example: torch.Tensor, sample: str) -> torch.Tensor:
        """Return a tensor of the shape, dtype, memory format and range of `example`, filled as `sample` says.

        Drawn values are multiples of `STEP` between the smallest and the largest finite value of `example`, or of
        another power of two where the range asks for it (`step_of`); the smallest of `MANY` is rounded up. Integers
        and booleans are drawn among all between them. Both parts of a complex tensor have their own. Where `example`
        is not finite, a mask for instance, values of the range are not either. Of integers, which may be indices,
        zeros are the value of the range that is nearest to zero; a list of different ones stays that (`_integers`).
        """
        if example.is_complex():
            made = torch.empty_like(example)
            for index, part in enumerate(torch.view_as_real(example.resolve_conj()).unbind(-1)):
                torch.view_as_real(made)[..., index] = self.like(f"{name}.{index}", part, sample)
            return made
        if example.dtype in PACKED:
            return self.like(name, example.view(PACKED[example.dtype]), sample).view(example.dtype)
        filled = torch.zeros_like(example)
        values = array_of(example)
        if values.size == 0:
            return filled
        generator = self.generator(f"{sample} {name}")
        drawn = _floats if values.dtype.kind == "f" else _integers
        return filled.copy_(torch.from_numpy(np.asarray(drawn(generator, values, sample))))

    def all_like(self, examples: Sequence[torch.Tensor], sample: str) -> tuple[torch.Tensor, ...]:
        """Return a tensor like each of `examples`; those that share memory share it as these do.

        A program is exported for inputs that are one tensor, or views of one, just as they are.
        """

        def fill(group: Mapping[int, torch.Tensor]) -> list[torch.Tensor]:
            if len(group) == 1:
                return [self.like(str(index), x, sample) for index, x in group.items()]
            given = _memory(next(iter(group.values())))
            memory = given.clone()
            numbers = torch.arange(memory.numel())
            places = {index: np.unique(_view(numbers, x).numpy()) for index, x in group.items()}
            # The widest first: a part of it that is an input of its own keeps to its own range.
            for index in sorted(group, key=lambda index: (-places[index].size, index)):
                there = torch.from_numpy(places[index])
                values = _bits(given)[there].view(given.dtype)
                _bits(memory)[there] = _bits(self.like(str(index), values, sample))
            return [_view(memory, x) for x in group.values()]

        return map_memory(examples, fill)

    @handed_on
    def normal(self, name: str, *shape: int) -> torch.Tensor:
        """Return float32 values of the standard normal distribution, such as no sum of is exact."""
        return torch.from_numpy(np.asarray(self.generator(name).standard_normal(shape), dtype=np.float32))

    @handed_on
    def fill_normal(self, module: torch.nn.Module) -> torch.nn.Module:
        """Overwrite the parameters and batch-norm statistics of `module` as training might; return it in eval mode.

        Weights are normal with a standard deviation of one over the root of their fan-in, scales and running variances
        lie around one, other vectors around zero, with a standard deviation of a tenth.
        """
        for name, parameter in module.named_parameters():
            drawn = self.normal(name, *parameter.shape)
            if parameter.dim() > 1:
                drawn = drawn / math.sqrt(parameter[0].numel())
            else:
                drawn = 0.1 * drawn + (1.0 if name.endswith("weight") else 0.0)
            parameter.data = drawn.to(parameter.dtype)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.data = (0.1 * self.normal(name, *buffer.shape)).to(buffer.dtype)
            if name.endswith("running_var"):
                buffer.data = (1.0 + (0.2 * self.normal(name, *buffer.shape)).abs()).to(buffer.dtype)
        return in_mode(module)

    @handed_on
    def fill(self, module: torch.nn.Module) -> torch.nn.Module:
        """Overwrite every floating parameter and batch-norm statistic of `module`; return it in eval mode.

        Each keeps its dtype. Buffers other than batch-norm statistics are left as the case made them. Scales
        (batch-norm and layer-norm weights, running variances) stay positive and near one. Other one-dimensional
        parameters lie in -0.5..0.5; weights are scaled to their fan-in (`fan_in_bits`).
        """
        for name, parameter in module.named_parameters():
            owner = module.get_submodule(name.rpartition(".")[0])
            if parameter.is_floating_point() or parameter.is_complex():
                parameter.data = self._value(name, owner, parameter.data).to(parameter.dtype)
        for name, buffer in module.named_buffers():
            if name.rpartition(".")[2] in ("running_mean", "running_var"):
                owner = module.get_submodule(name.rpartition(".")[0])
                buffer.data = self._value(name, owner, buffer.data).to(buffer.dtype)
        return in_mode(module)

    def _value(self, name: str, owner: torch.nn.Module, like: torch.Tensor) -> torch.Tensor:
        leaf = name.rpartition(".")[2]
        is_scale = leaf == "running_var" or (leaf == "weight" and like.dim() == 1)
        if is_scale and not isinstance(owner, torch.nn.PReLU):
            return 1.0 + self.tensor(name, *like.shape, bits=3, limit=4)
        if like.dim() < 2:
            return self.tensor(name, *like.shape, bits=5, limit=16)
        fan_in = like[0].numel()
        return self.tensor(name, *like.shape, bits=WEIGHT_BITS + fan_in_bits(fan_in), limit=2**WEIGHT_BITS)


def in_mode(module: torch.nn.Module, training: bool = False) -> torch.nn.Module:
    """Return `module` in eval or training mode, except submodules that set their own.

    What ``torch.export`` made has a mode that is part of its graph: its ``eval`` raises, or, after torchao's
    ``allow_exported_model_train_eval``, rewrites the graph. It stays as the case gives it.
    """
    own = {"eval", "train"}
    if not own & vars(module).keys():
        if not any(own & vars(inner).keys() for inner in module.modules()):
            module.train(training)
        else:
            module.training = training
            for child in module.children():
                in_mode(child, training)
    return module


def in_training(module: torch.nn.Module, name: str = "") -> Iterator[str]:
    """Yield the name of each module in training mode that `in_mode` puts into eval mode; the outermost's is empty."""
    if {"eval", "train"} & vars(module).keys():
        return
    if module.training:
        yield name
    for inner, child in module.named_children():
        yield from in_training(child, f"{name}.{inner}".lstrip("."))


def _integers(
    generator: np.random.Generator, values: np.ndarray[Any, Any], sample: str
) -> np.ndarray[Any, Any]:
    """Return integers or booleans of the dtype and shape of `values`, between the smallest and the largest of them.

    A list of integers that are all different may be one of places to write to, which may not be named twice: it gets
    another order, and keeps its values.
    """
    low, high = int(values.min()), int(values.max())
    if values.ndim == 1 and values.dtype.kind == "i" and 1 < values.size == np.unique(values).size:
        ordered = np.sort(values)
        if sample == "zeros":
            return ordered
        return ordered[::-1].copy() if sample == "extremes" else generator.permutation(values)
    if sample == "zeros":
        nearest = 0 if values.dtype.kind == "b" else min(max(0, low), high)
        return np.full_like(values, nearest)
    if sample == "extremes":
        return np.asarray(generator.choice(np.array([low, high], values.dtype), size=values.shape))
    width = np.int64 if high - low <= np.iinfo(np.int64).max else np.uint64
    beyond = np.asarray(generator.integers(0, high - low, values.shape, dtype=width, endpoint=True))
    # Modulo 2**64, so that the smallest of int64 and the largest of uint64 are no exceptions.
    return np.asarray((beyond.astype(np.uint64) + np.uint64(low % 2**64)).astype(values.dtype))


def _floats(
    generator: np.random.Generator, values: np.ndarray[Any, Any], sample: str
) -> np.ndarray[Any, Any]:
    """Return float64 of the shape of `values`, between the smallest and the largest finite one; see `Data.like`."""
    if sample == "zeros":
        return np.zeros(values.shape)
    finite = values[np.isfinite(values)].astype(np.float64)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if sample == "extremes":
        drawn = generator.choice(np.array([low, high]), size=values.shape)
    else:
        span = min(high - low, sys.float_info.max)
        step = step_of(span)
        if values.size >= MANY:
            low = min(math.ceil(low / step * PARTS) * step / PARTS, high)
            span = min(high - low, sys.float_info.max)
        drawn = low + step * generator.integers(0, int(span / step), values.shape, endpoint=True)
    return np.where(np.isfinite(values), drawn, values)


def step_of(span: float) -> float:
    """Return the distance of values that are drawn from a range of `span`: `STEP`, or more, or less.

    >>> [step_of(span) for span in (2.0, 0.25, 0.2, 0.0, 2.0**21)]
    [0.0625, 0.0625, 0.0078125, 0.0625, 0.25]
    """
    if span == 0.0:
        return STEP
    exponent = math.frexp(span)[1]
    if span < 4 * STEP:
        return max(2.0 ** (exponent - 1 - FEWEST_STEPS), sys.float_info.min)
    return max(STEP, 2.0 ** (exponent - MOST_STEPS))


def map_memory(
    tensors: Sequence[torch.Tensor], change: Callable[[Mapping[int, torch.Tensor]], Sequence[torch.Tensor]]
) -> tuple[torch.Tensor, ...]:
    """Return `change(tensor)` for each of `tensors`; a repeated tensor is changed once.

    Parameters
    ----------
    change
        Takes tensors of one dtype that lie in one memory, by their first place in `tensors`, and returns as many.
    """
    groups: dict[tuple[int, torch.dtype], dict[int, torch.Tensor]] = {}
    places: dict[int, int] = {}
    for index, tensor in enumerate(tensors):
        if places.setdefault(id(tensor), index) == index:
            # An empty tensor has no memory to share.
            start = tensor.untyped_storage().data_ptr() or -index
            groups.setdefault((start, tensor.dtype), {})[index] = tensor
    changed = {
        index: made for group in groups.values() for index, made in zip(group, change(group), strict=True)
    }
    return tuple(changed[places[id(tensor)]] for tensor in tensors)


def cast(tensors: Sequence[torch.Tensor], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Return `tensors`, the floating ones in `dtype`; those that share memory still do."""

    def change(group: Mapping[int, torch.Tensor]) -> Sequence[torch.Tensor]:
        first, *others = group.values()
        if not first.is_floating_point():
            return [first, *others]
        if not others:
            return [first.to(dtype)]
        memory = _memory(first).to(dtype)
        return [_view(memory, x) for x in group.values()]

    return map_memory(tensors, change)


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """Return all elements of the memory that `tensor` is a view of, in one dimension."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.detach().as_strided((elements,), (1,), 0)


def _view(memory: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return the view of `memory` that `tensor` is of its own."""
    return memory.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return `tensor` as integers that torch can write at places, which it cannot for every dtype."""
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(sizes[tensor.element_size()]) if tensor.element_size() in sizes else tensor


@dataclass(frozen=True)
class Example:
    """A model and the inputs it is exported with.

    Attributes
    ----------
    module
        Put into eval mode by `example_of`.
    inputs
        Its positional arguments: tensors, numbers, strings and None, also nested, as ``torch.export`` takes them
        (`executorch_goldens.exporting.calls`). Quantized targets calibrate with them.
    fill
        Whether `Data.fill` replaces the parameters. False keeps the module's own, a checkpoint's for instance; two
        processes must then build the same bits.
    dynamic_shapes
        Dimensions of each input that may change, for `torch.export.export`, as ``{dimension: Dim}``, nested
        as the inputs are.
    kwargs
        Its keyword arguments.
    recorded
        ``.npz`` file, or files, of samples that the program is judged on as well, relative to the module of the case
        (`executorch_goldens.exporting.recorded`).
    calibration
        Calibration inputs of quantized targets in place of the inputs: an ``.npz`` file, or several sets of inputs. One
        is a tuple as `inputs`; where there are `kwargs`, a pair of both.
    quantizer
        Takes the `executorch_goldens.zoo.targets.Target` that is quantized for, and returns a quantizer in place of its
        own; None for its own.
    train
        Makes quantized targets train: takes the model as ``prepare_qat_pt2e`` prepares it, after it has run on what it
        calibrates with, and changes it in place. It is called with the seed 0.
    metric
        Metric of the task: takes the outputs of the program, arrays by name of the sample, of what is recorded or else
        of the example, and returns a number, the more the better.
    bound
        The least that `metric` may be.
    program
        A program that is exported already: `module` is its module, and nothing is exported for float targets.
    recordings, calibrating
        The tensors of `recorded` and `calibration`, once `example_of` has read them.
    """

    module: torch.nn.Module
    inputs: tuple[Any, ...]
    fill: bool = True
    dynamic_shapes: Any = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    recorded: str | Path | Sequence[str | Path] = ()
    calibration: str | Path | Iterable[Any] | None = None
    quantizer: Callable[[Target], Any] | None = None
    train: Callable[[torch.fx.GraphModule], object] | None = None
    metric: Callable[[Outputs], float] | None = None
    bound: float = -math.inf
    program: torch.export.ExportedProgram | None = None
    recordings: Mapping[str, tuple[torch.Tensor, ...]] = field(default_factory=dict)
    calibrating: tuple[tuple[torch.Tensor, ...], ...] = ()

    @functools.cached_property
    def call(self) -> CallSpec:
        """Return the arguments of a call of the module."""
        return CallSpec.from_arguments(self.inputs, self.kwargs)

    @functools.cached_property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The tensors among the inputs, in the order of `call`."""
        return tensors_in((self.inputs, dict(self.kwargs)))

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> Example:
        """Return the example with other tensors among its inputs."""
        args, kwargs = self.call.arguments(tensors)
        return replace(self, inputs=args, kwargs=kwargs)


def require_example(case: Case, built: object) -> Example:
    """Return the result of a case; raise `ZooError` unless it is an `Example` of a module and a tuple of inputs."""
    what = f"case {case.name!r} of {case.module}"
    if not isinstance(built, Example):
        raise ZooError(f"{what} gives {type_of(built)}, and no Example: return Example(module, (input,))")
    if not isinstance(built.module, torch.nn.Module):
        raise ZooError(
            f"the module of {what} is no torch.nn.Module but {type_of(built.module)}: a function that changes a model "
            "in place, such as torchao's quantize_, may return None"
        )
    if not isinstance(built.inputs, tuple):
        raise ZooError(f"the inputs of {what} are no tuple but {type_of(built.inputs)}: write (input,)")
    if not isinstance(built.kwargs, Mapping) or not all(isinstance(name, str) for name in built.kwargs):
        raise ZooError(f"kwargs of {what} is {built.kwargs!r}, and not a dictionary of inputs by name")
    require_leaves(what, built.inputs, built.kwargs)
    for name in ("quantizer", "train", "metric"):
        if (given := getattr(built, name)) is not None and not callable(given):
            raise ZooError(f"{name} of {what} is no function but {type_of(given)}")
    for leaf, shape in built.call.declared(built.module, _shapes(built)):
        if leaf is not TENSOR and shape is not None:
            raise ZooError(
                f"dynamic_shapes of {what} declares {shape!r} of an input that is {leaf!r}: only dimensions of tensors "
                "may change here; other inputs are fixed at export"
            )
    return built


def example_of(case: Case) -> Example:
    """Build the model of `case` and its inputs, with deterministic weights, in eval mode; raise `ZooError`."""
    data = Data(case.name)
    built = require_example(case, case.build(data))
    module = data.fill(built.module) if built.fill else in_mode(built.module)
    example = replace(built, module=module, dynamic_shapes=_shapes(built))
    what, keys = f"case {case.name!r} of {case.module}", example.call.names(module)
    shapes = example.call.shapes(module, example.dynamic_shapes)
    inputs = Inputs(what, folder_of(case), example.tensors, example.call, keys, shapes)
    calibrates = example.calibration is not None
    return replace(
        example,
        recordings=inputs.recorded(example.recorded),
        calibrating=inputs.calibration(example.calibration) if calibrates else (),
    )


def _shapes(built: Example) -> Any:
    """Return ``dynamic_shapes`` of an example; a collection refers to the inputs by identity."""
    shapes = built.dynamic_shapes
    if not isinstance(shapes, torch.export.ShapesCollection):
        return shapes
    return shapes.dynamic_shapes(  # type: ignore[no-untyped-call]
        built.module, built.inputs, dict(built.kwargs)
    )


def measured(example: Example, outputs: Results, eager: Results) -> Metric | None:
    """Return the metric of an example for outputs; None without a metric, or without a run.

    Parameters
    ----------
    outputs, eager
        The outputs of the program, and of the model before it is quantized, by name of the sample.

    Raises
    ------
    ZooError
        For a metric that raises, or gives no number.
    """
    names = [name for name in (example.recordings or ("example",)) if name in outputs]
    if example.metric is None or not names:
        return None
    called = getattr(example.metric, "__name__", "")
    name = called if re.fullmatch(r"[A-Za-z]\w{0,63}", called) else "metric"
    value, right = (_value(example, name, side, names) for side in (outputs, eager))
    return Metric(name, value, right, float(example.bound))


def _value(example: Example, name: str, outputs: Results, names: Sequence[str]) -> float:
    assert example.metric is not None
    arrays = {sample: [output.array().copy() for output in outputs[sample]] for sample in names}
    try:
        value = example.metric(arrays)
    except Exception as error:
        raise ZooError(f"the metric {name} raises {type(error).__name__}: {error}") from None
    if not isinstance(value, int | float | np.number) or np.ndim(value):
        raise ZooError(f"the metric {name} gives {value!r}, and no number")
    return float(value)
