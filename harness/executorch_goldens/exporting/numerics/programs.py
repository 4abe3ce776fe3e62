"""Runs exported programs, and computes their expected outputs."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.tensor import get_scalar_type
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
)
from torch.utils import _pytree as pytree

from executorch_goldens.artifact import Delegate, Tensor
from executorch_goldens.decode import Schemas, decode
from executorch_goldens.exporting import compat, kernels
from executorch_goldens.exporting.arrays import array_of
from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.dialect import operator_of
from executorch_goldens.exporting.eager import FLOAT8
from executorch_goldens.exporting.observing import NOBODY, Observer, Simulator
from executorch_goldens.files.wording import type_of
from executorch_goldens.numerics import open_sizes
from executorch_goldens.zoo.registry import ZooError
from executorch_goldens.zoo.targets import RUNTIME

#: The backend whose delegates the reference model runs.
TOSA_BACKEND = "TOSABackend"
#: The inputs of runs that follow one another; a program with a state keeps it between them.
Steps = Sequence[Sequence[torch.Tensor]]

_DECOMPOSED = torch.ops.quantized_decomposed
#: Those of a quantized eager graph, with its scale as a number, as a tensor, and with all as tensors.
DEQUANTIZE, QUANTIZE = (
    frozenset({packet.default, packet.tensor, packet.tensor2})
    for packet in (_DECOMPOSED.dequantize_per_tensor, _DECOMPOSED.quantize_per_tensor)
)
#: Kinds of output beside a tensor and None: types (the first that matches decides), the result for each, and the
#: dtype that holds it. A bool is an int to Python.
NUMBERS: Sequence[tuple[tuple[type, ...], type, type]] = (
    ((bool, torch.SymBool), bool, np.bool_),
    ((int, torch.SymInt), int, np.int64),
    ((float, torch.SymFloat), float, np.float64),
)
#: Dtypes that numpy or TOSA lacks, and that of the reference model's arrays for their bits. TOSA has no uint8: a tensor
#: of it is one of int8, which the operator RESCALE takes, or gives, as unsigned.
BITS = {torch.bfloat16: torch.uint16, torch.uint8: torch.int8, **dict.fromkeys(FLOAT8, torch.uint8)}
#: Kinds of outputs that the caller gets, and that the program keeps for its next run; tokens are of no further use.
TO_USER = frozenset({OutputKind.USER_INPUT_MUTATION, OutputKind.USER_OUTPUT})
TO_STATE = frozenset({OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION})
#: Operators whose third argument is a tensor of zero points.
PER_CHANNEL = frozenset(
    {_DECOMPOSED.quantize_per_channel.default, _DECOMPOSED.dequantize_per_channel.default}
)


def flatten(outputs: Any) -> tuple[Tensor, ...]:
    """Return a model's outputs, of whatever structure, as tensors in order; dtypes that numpy lacks as `array_of` does.

    Numbers, sizes that follow from an input's, and None keep what they are (`Tensor.kind`).

    Raises
    ------
    ZooError
        For an output of another type.
    """
    return tuple(_output(index, leaf) for index, leaf in enumerate(pytree.tree_leaves(outputs)))


def _output(index: int, leaf: Any) -> Tensor:
    if isinstance(leaf, torch.Tensor):
        return Tensor.from_array(array_of(leaf.contiguous()))
    if leaf is None:
        return Tensor.from_array(np.zeros(0, np.bool_), "None")
    for types, kind, dtype in NUMBERS:
        if isinstance(leaf, types):
            return Tensor.from_array(np.array(kind(leaf), dtype), kind.__name__)
    raise ZooError(f"output {index} is {type_of(leaf)}: let the model return tensors, numbers or None")


def given_by(module: torch.nn.Module, steps: Steps) -> list[Any]:
    """Run a model step by step; return the inputs that the last step changes, in order, then its outputs.

    A lowered program gives the inputs that it changes ahead of its outputs (``USER_INPUT_MUTATION``).

    Parameters
    ----------
    steps
        The inputs of each, which the model may change.
    """
    made = []
    for inputs in steps:
        # Counts what is written to a tensor, through whichever view of it.
        before = [x._version for x in inputs]
        outputs = pytree.tree_leaves(module(*inputs))
        changed = [x for x, version in zip(inputs, before, strict=True) if x._version > version]
        made = [*changed, *outputs]
    return made


def overwrite(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copy `values` into `tensor`, which has their shape and may be expanded: torch writes to no element twice."""
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if size > 1 and stride == 0:
            tensor, values = tensor.narrow(axis, 0, 1), values.narrow(axis, 0, 1)
    tensor.copy_(values)


@contextlib.contextmanager
def keeping(states: Iterable[torch.Tensor]) -> Iterator[None]:
    """Give tensors back, at the end, the values that they have now."""
    kept = [(state, state.clone()) for state in states]
    yield
    with torch.no_grad():
        for state, before in kept:
            overwrite(state, before)


def laid_out(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """Return `tensor` with its dimensions in memory in an order: the runtime does not look."""
    return tensor.permute(tuple(order)).contiguous().permute(np.argsort(order).tolist())


def states(module: torch.nn.Module, call: CallSpec, inputs: Sequence[torch.Tensor]) -> frozenset[str]:
    """Return the names of the buffers of `module`, which is left as it is, that a run of it changes."""
    own = copy.deepcopy(module)
    before = [(name, buffer, buffer._version) for name, buffer in own.named_buffers()]
    if before:
        call.run(own, copy.deepcopy(tuple(inputs)))
    return frozenset(name for name, buffer, version in before if buffer._version > version)


def without_meaning(expected: Mapping[str, Sequence[Tensor]]) -> tuple[str, ...]:
    """Return the samples on which a model gives a NaN or an infinity where it gives a number on the first, its example.

    Parameters
    ----------
    expected
        The model's outputs, by name of the sample.
    """
    first = next(iter(expected.values()), ())
    return tuple(
        name
        for name, outputs in expected.items()
        if any(_departs(output, of_first) for output, of_first in zip(outputs, first, strict=False))
    )


def _departs(output: Tensor, of_example: Tensor) -> bool:
    here = ~np.isfinite(output.array())
    there = ~np.isfinite(of_example.array())
    # Where the shape follows the values, no element has its like in the other.
    return bool((here & ~there).any() if here.shape == there.shape else here.any() and not there.any())


def beyond_runtime(program: Any) -> str:
    """Return which inputs of an emitted program the installed runtime cannot be given; empty if none.

    Parameters
    ----------
    program
        An `executorch.exir.schema.Program`.
    """
    given = (
        value.val for plan in program.execution_plan for value in map(plan.values.__getitem__, plan.inputs)
    )
    if not compat.bindings_take_floats() and any(type(value).__name__ == "Double" for value in given):
        return "the runtime's Python interface takes no float as an input before ExecuTorch 1.3.1"
    return ""


def operators_of(program: Any) -> Iterator[str]:
    """Yield the operators of an emitted program, such as ``aten::add.out``."""
    for plan in program.execution_plan:
        for each in plan.operators:
            yield f"{each.name}.{each.overload}" if each.overload else each.name


def without_kernels(asked: Iterable[str]) -> tuple[str, ...]:
    """Return which of some operators the installed runtime has no kernel for, sorted."""
    return tuple(sorted({*asked} - {*kernels.load()}))


def beyond_reference_model(delegates: Iterable[Delegate]) -> str:
    """Return what TOSA's reference model lacks for the delegates of a program; empty if nothing."""
    found = (open_sizes.lacking(each.payload) for each in delegates if each.backend_id == TOSA_BACKEND)
    return next(filter(None, found), "")


@handed_on
def run_methods(pte: bytes, calls: Sequence[tuple[str, Sequence[Any]]], data: bytes = b"") -> list[Any]:
    """Run methods of a program in ExecuTorch's own runtime, one after another; return the outputs of the last.

    Several methods share their state only in what the runtime calls a program. In what it calls a module, which takes a
    data file in all five releases, each has its own.

    Parameters
    ----------
    calls
        The method and the inputs of each step; see `executorch_goldens.exporting.calls.CallSpec.for_runtime`.
    data
        A data file (``.ptd``); empty where there is none.
    """
    names = {name for name, _ in calls}
    if len(names) == 1:
        return last_outputs(loaded(pte, data, *names), (inputs for _, inputs in calls))
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(pte)
    methods = {name: program.load_method(name) for name in names}
    return last_outputs(lambda call: methods[call[0]].execute(tuple(call[1])), calls)


@handed_on
def loaded(pte: bytes, data: bytes, method: str) -> Callable[[tuple[Any, ...]], Sequence[Any]]:
    """Load a program into ExecuTorch's own runtime as what this calls a module; return what runs a method of it.

    The runtime starts a thread pool of its own: call this in a process that will not fork afterwards.
    """
    from executorch.extension.pybindings import portable_lib

    module = portable_lib._load_for_executorch_from_buffer(pte, data or None)

    @handed_on
    def run(inputs: tuple[Any, ...], _held: bytes = pte) -> Sequence[Any]:
        # The module reads the bytes for as long as it is there.
        outputs: Sequence[Any] = module.run_method(method, inputs)
        return outputs

    return run


class Elsewhere:
    """Runs delegates of an emitted program that are not run in the runtime.

    Parameters
    ----------
    module
        The lowered graph; None for a program that came as bytes. A simulator is given its delegates.
    runs
        See `executorch_goldens.zoo.targets.Target`: the reference model takes the delegates of TOSA, a simulator all.
    """

    def __init__(
        self,
        module: torch.nn.Module | None,
        runs: str,
        observer: Observer = NOBODY,
        simulator: Simulator | None = None,
    ) -> None:
        self.runs, self.observer, self.simulator = runs, observer, simulator
        self.lowered = {
            (each.backend_id, bytes(each.processed_bytes)): each
            for each in (module.modules() if module is not None else ())
            if isinstance(each, LoweredBackendModule)
        }

    def takes(self, backend: str) -> bool:
        """Return whether delegates of a backend are run here."""
        return self.runs != RUNTIME and (self.simulator is not None or backend == TOSA_BACKEND)

    def count(self, backend: str, payload: bytes) -> int:
        """Return how many outputs a delegate has."""
        if (lowered := self.lowered.get((backend, payload))) is not None:
            return len(lowered.original_module.graph.output_node().args[0])
        return len(decode(payload, schemas=Schemas.installed()).graphs[0].outputs)

    def run(
        self, backend: str, payload: bytes, inputs: Sequence[Any], taken: Sequence[Any], given: Sequence[Any]
    ) -> Sequence[torch.Tensor]:
        """Run a delegate.

        Parameters
        ----------
        taken, given
            Declarations of its inputs and of its outputs in the program, as `executorch.exir.schema.Tensor`.
        """
        if self.simulator is not None:
            return self.simulator(self.lowered[backend, payload], inputs)
        layouts, made = (list(map(Layout.declared, side)) for side in (taken, given))
        return run_payload(payload, inputs, layouts, made, self.observer)


@handed_on
def last_outputs(
    run: Callable[[tuple[Any, ...]], Sequence[Any]], steps: Iterable[Iterable[Any]]
) -> list[Any]:
    """Run a loaded program step by step; return copies of the last outputs.

    Outputs may be views of the program's memory, which goes with it.
    """
    outputs: Sequence[Any] = ()
    for inputs in steps:
        outputs = run(tuple(inputs))
    return [output.clone() if isinstance(output, torch.Tensor) else output for output in outputs]


def run_edge(
    interpreter: torch.fx.Interpreter,
    signature: ExportGraphSignature,
    held: MutableMapping[str, Any],
    inputs: Sequence[torch.Tensor],
) -> tuple[Tensor, ...]:
    """Run an edge program; return its results for the user: mutated inputs, then outputs.

    Parameters
    ----------
    held
        See `held_by`; gets the new values of the buffers that the program changes.
    """
    with torch.no_grad():
        outputs = interpreter.run(*_arguments(signature, held, inputs))
    given = list(zip(outputs, signature.output_specs, strict=True))
    held.update((str(spec.target), value) for value, spec in given if spec.kind in TO_STATE)
    return flatten([value for value, spec in given if spec.kind in TO_USER])


def evaluate(
    program: torch.export.ExportedProgram,
    inputs: Sequence[torch.Tensor],
    given: Mapping[str, torch.Tensor] | None = None,
) -> dict[str, Any]:
    """Run an edge program eagerly; return the value of each node, by name.

    Parameters
    ----------
    given
        Values, by name of a node, that the nodes after it take in place of its own.
    """
    interpreter = _Noting(program.graph_module, given or {})
    with torch.no_grad():
        interpreter.run(*_arguments(program.graph_signature, held_by(program), inputs))
    return interpreter.values


def held_by(program: torch.export.ExportedProgram) -> dict[str, Any]:
    """Return parameters, buffers and constants of a program by the names that its signature has for them."""
    return {**program.state_dict, **program.constants}


def _arguments(
    signature: ExportGraphSignature, held: Mapping[str, Any], inputs: Sequence[torch.Tensor]
) -> list[Any]:
    """Return the values of the placeholders of a program, in its order.

    These are user inputs, parameters, buffers, constants, objects, numbers that the program was exported with, and the
    tokens that order operators with an effect, which are tensors of no element.
    """
    specs = signature.input_specs
    require_matching("the program takes", list(filter(_is_given, specs)), inputs)
    remaining = iter(inputs)
    return [next(remaining) if _is_given(spec) else _own_value(spec, held) for spec in specs]


def _is_given(spec: InputSpec) -> bool:
    """Return whether the user passes an input; inputs that are no tensors keep their value at export."""
    return spec.kind is InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)


def _own_value(spec: InputSpec, held: Mapping[str, Any]) -> Any:
    if isinstance(spec.arg, ConstantArgument):
        return spec.arg.value
    return torch.zeros(0) if spec.kind is InputKind.TOKEN else held[str(spec.target)]


@handed_on
def require_matching(what: str, declared: Sequence[Any], given: Sequence[Any]) -> None:
    """Raise RuntimeError for a program that declares other inputs or outputs than there are: it is wrong."""
    if len(declared) != len(given):
        raise RuntimeError(f"{what} {len(declared)} tensors where there are {len(given)}")


class EdgeInterpreter(torch.fx.Interpreter):
    """Runs every node eagerly."""

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if operator_of(target) in PER_CHANNEL:
            # Quantizers leave int32 zero points; the eager kernel, unlike the runtime's, takes int64 only.
            value, scales, zero_points, *others = args
            if getattr(zero_points, "dtype", None) is torch.int32:
                args = (value, scales, zero_points.long(), *others)
        return super().call_function(target, args, kwargs)


class _Noting(EdgeInterpreter):
    """Records the value of each node; see `evaluate`."""

    def __init__(self, module: torch.fx.GraphModule, given: Mapping[str, torch.Tensor]) -> None:
        super().__init__(module)
        self.given = given
        self.values: dict[str, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        self.values[n.name] = super().run_node(n)
        return self.given.get(n.name, self.values[n.name])


def run_tosa(
    lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor], observer: Observer = NOBODY
) -> list[torch.Tensor]:
    """Run one TOSA delegate in tosa-tools' reference model, in this process.

    A delegate takes and gives tensors as they lie in memory: a channels-last tensor of shape (N, C, H, W) is an array
    of shape (N, H, W, C). Which are, the graph that was lowered says.

    Raises
    ------
    RuntimeError
        If the reference model finds the payload, or its inputs, not to be valid TOSA.
    """
    nodes = lowered.original_module.graph.output_node().args[0]
    return run_payload(
        lowered.processed_bytes, inputs, _taken(lowered), list(map(Layout.from_node, nodes)), observer
    )


@dataclass(frozen=True)
class Layout:
    """The dtype of a tensor that a delegate takes or gives, and the order of its dimensions in memory."""

    dtype: torch.dtype
    order: tuple[int, ...]

    @classmethod
    def from_node(cls, node: torch.fx.Node) -> Layout:
        value = node.meta["val"]
        return cls(value.dtype, tuple(value.dim_order()))

    @classmethod
    def declared(cls, value: Any) -> Layout:
        """Return that of an `executorch.exir.schema.Tensor`."""
        return cls(get_scalar_type(value.scalar_type), tuple(value.dim_order))


def _taken(lowered: LoweredBackendModule) -> list[Layout]:
    nodes = lowered.original_module.graph.nodes
    placeholders = {node.name: node for node in nodes if node.op == "placeholder"}
    return [
        Layout.from_node(placeholders[name]) for name in lowered.original_module.graph_signature.user_inputs
    ]


def tosa_arrays(lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor]) -> list[np.ndarray[Any, Any]]:
    """Return the reference model's arrays for the inputs of a TOSA delegate."""
    return _arrays(inputs, _taken(lowered))


def _arrays(inputs: Sequence[torch.Tensor], taken: Sequence[Layout]) -> list[np.ndarray[Any, Any]]:
    require_matching("a delegate takes", taken, inputs)
    return [
        _to_model(_of_rank(tensor.detach(), layout).permute(layout.order).contiguous())
        for layout, tensor in zip(taken, inputs, strict=True)
    ]


def run_payload(
    payload: bytes,
    inputs: Sequence[torch.Tensor],
    taken: Sequence[Layout],
    given: Sequence[Layout],
    observer: Observer = NOBODY,
) -> list[torch.Tensor]:
    """Run a TOSA payload in tosa-tools' reference model; see `run_tosa`.

    Parameters
    ----------
    taken, given
        Layouts of its inputs and of its outputs.
    """
    arrays = _arrays(inputs, taken)
    observer.calls(payload, arrays)
    outputs = run_model(payload, arrays)
    observer.called(payload, arrays, outputs)
    require_matching("a delegate gives", given, outputs)
    return [
        _of_rank(from_model(output, layout.dtype), layout).permute(tuple(np.argsort(layout.order)))
        for layout, output in zip(given, outputs, strict=True)
    ]


@handed_on
def run_model(payload: bytes, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run a TOSA payload in the reference model; raise RuntimeError if it, or an input, is not valid TOSA.

    Sizes that the payload leaves open are those that follow from the arrays.
    """
    import tosa_reference_model

    try:
        sized = open_sizes.with_sizes(payload, [array.shape for array in arrays])
    except open_sizes.OpenSizeError as error:
        raise RuntimeError(str(error)) from None
    # For a payload that it refuses it would have gdb read each library of this process.
    os.environ["TOSA_MODEL_NO_BACKTRACE"] = "1"
    outputs, status = tosa_reference_model.run(
        sized,
        list(arrays),
        verbosity="LOW",
        initialize_variable_tensor_from_numpy=True,
        debug_mode=None,
    )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise RuntimeError(f"the TOSA reference model says {status}")
    return list(outputs)


def is_unpredictable(error: RuntimeError) -> bool:
    """Return whether the reference model says that TOSA leaves the result for these inputs open."""
    return "TOSA_UNPREDICTABLE" in str(error)


@handed_on
def _of_rank(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Return `tensor`, which a delegate takes or gives, with the number of dimensions that it has outside.

    The reference model gives a tensor without dimensions as one of a single element.
    """
    rank = len(layout.order)
    if rank == 0 and tensor.numel() == 1:
        return tensor.reshape(())
    if tensor.dim() != rank:
        raise RuntimeError(f"a delegate has {tensor.dim()} dimensions where the program has {rank}")
    return tensor


def _to_model(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the reference model's array for `tensor`."""
    return tensor.view(BITS.get(tensor.dtype, tensor.dtype)).numpy()


def from_model(array: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """Return the tensor that the reference model gave as `array`."""
    copied = np.array(array)
    if dtype in BITS:
        return torch.from_numpy(copied.view(f"u{copied.itemsize}")).view(dtype)
    return torch.from_numpy(copied)


def output_codes(converted: torch.fx.GraphModule) -> tuple[Tensor, ...]:
    """Return the integer codes of each output of a quantized eager graph that takes no inputs.

    Outputs are ``dequantize(codes)`` in a graph that the quantizer annotated to its end; an output that is not is
    returned as the float tensor it is.
    """
    interpreter = _Noting(converted, {})
    with torch.no_grad():
        interpreter.run()
    sources = (
        each.args[0] if isinstance(each, torch.fx.Node) and each.target in DEQUANTIZE else each
        for each in _outputs(converted)
    )
    return flatten(
        [interpreter.values[each.name] if isinstance(each, torch.fx.Node) else each for each in sources]
    )


def output_scales(converted: torch.fx.GraphModule) -> tuple[float, ...]:
    """Return the scale of the dequantize before each output of a quantized eager graph; 0 where there is none."""
    return tuple(
        node.args[1]
        if isinstance(node, torch.fx.Node) and node.target in DEQUANTIZE and isinstance(node.args[1], float)
        else 0.0
        for node in _outputs(converted)
    )


def _outputs(module: torch.fx.GraphModule) -> list[Any]:
    """Return the outputs of a graph: nodes, and values that are no tensors and constant."""
    return pytree.tree_leaves(module.graph.output_node().args[0])
