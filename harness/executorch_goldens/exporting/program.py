"""What goes through an export: what is asked for, what should come out, and the program as it is before it is run.

Nothing here changes: each stage returns what it made, and `ExportProgress` is how far an export has come.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens.artifact import Delegate, Lowered, Tensor
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.inside.beginning import EdgeMethod
from executorch_goldens.exporting.limits import EndlessError, ending_within
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics import rounding
from executorch_goldens.exporting.numerics.arithmetic import Approximations
from executorch_goldens.exporting.numerics.programs import Steps
from executorch_goldens.exporting.numerics.samples import samples_of
from executorch_goldens.exporting.observing import NOBODY, Observer
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.exporting.trace import Watch, is_plain
from executorch_goldens.files import shortage
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.zoo.registry import Case, UnsteadyError
from executorch_goldens.zoo.targets import Target

#: The stage in which a case is built and its model is run.
MODEL = "model"
#: Difference of an output, as a part of its largest value, that is none when a model is called again: memory may be
#: aligned otherwise, and sums then be in another order.
AGAIN = 2.0**-16
#: Seconds of processor time after which a model does not end on a sample, beside a hundred times what it takes on its
#: example.
ENDLESS = 10.0


@dataclass(frozen=True)
class Request:
    """The export of one case for one target.

    Attributes
    ----------
    execute
        Whether the program is run on the case's samples.
    tolerance
        Tolerance in place of the target's bound.
    watch
        Notes the stages; enter it to have passes and node visitors noted as well.
    observer
        Sees what is run.
    """

    case: Case
    lowering: Lowering
    execute: bool = True
    tolerance: float | None = None
    watch: Watch = field(default_factory=Watch)
    observer: Observer = NOBODY

    @property
    def target(self) -> Target:
        return self.lowering.target

    @property
    def bound(self) -> float:
        """The tolerance beside rounding; see `executorch_goldens.zoo.targets.Target`."""
        return self.target.bound if self.tolerance is None else self.tolerance


@dataclass(frozen=True)
class Reference:
    """Samples that one method of a program, or several in order, are run on, and what should come out.

    Attributes
    ----------
    order
        The methods that the steps of a sample run: one for all steps, or one for each.
    calls
        The arguments of each of these; the steps of a sample are the tensors of them.
    samples
        Steps to run, by sample name; the outputs of the last count.
    expected
        Outputs for each of them of the eager model or, once quantized, of the quantized eager graph.
    moved
        Movement of the outputs for each of them by rounding alone; none for runs that were recorded elsewhere.
    floats
        Outputs for each of them of the model before it is quantized; none where it is not.
    scales, codes, unjudged
        See `Lowered`.
    graphs
        Returns the graph of the float model, None where it is trained, and of the quantized one; None where nothing is
        quantized.
    folded
        Whether the weights of the second are codes already; the harness quantizes again without that.
    """

    order: tuple[str, ...]
    calls: tuple[CallSpec, ...]
    samples: Mapping[str, Steps] = field(default_factory=dict)
    expected: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    moved: Mapping[str, rounding.Moved] = field(default_factory=dict)
    floats: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    scales: tuple[float, ...] = ()
    codes: tuple[Tensor, ...] = ()
    unjudged: tuple[tuple[str, str], ...] = ()
    graphs: Callable[[], tuple[torch.nn.Module | None, torch.nn.Module]] | None = None
    folded: bool = False

    @property
    def method(self) -> str:
        """The method whose outputs count."""
        return self.order[-1]

    def methods_of(self, steps: Steps) -> tuple[str, ...]:
        """Return the method that each step runs."""
        return self.order if len(self.order) > 1 else self.order * len(steps)

    def flat(self, module: torch.nn.Module) -> torch.nn.Module:
        """Return a module that takes the tensors of a step; one that runs methods in order does."""
        return module if len(self.order) > 1 else self.calls[0].flat(module)

    def for_runtime(self, steps: Steps) -> list[tuple[str, Sequence[Any]]]:
        """Return the runtime's inputs: the method of each step, and its arguments."""
        calls = self.calls if len(self.order) > 1 else self.calls * len(steps)
        given = (call.for_runtime(inputs) for call, inputs in zip(calls, steps, strict=True))
        return list(zip(self.methods_of(steps), given, strict=True))

    def without(self, left_out: Mapping[str, str]) -> Reference:
        """Return this without some samples, each with why it is not judged."""
        return dataclasses.replace(
            self,
            samples={name: steps for name, steps in self.samples.items() if name not in left_out},
            expected={name: made for name, made in self.expected.items() if name not in left_out},
            unjudged=(*self.unjudged, *left_out.items()),
        )


def sampled(
    request: Request, example: Example, method: str, prefix: str = ""
) -> tuple[Reference, Collection[str]]:
    """Return the samples of a method, each name after `prefix`, and the buffers that the model writes to."""
    with torch.no_grad(), request.lowering.eager():
        states = numerics.states(example.module, example.call, example.tensors)
    found = samples_of(request.case, example, remembers=bool(states))
    samples = {f"{prefix}{name}": steps for name, steps in found.items()}
    return Reference((method,), (example.call,), samples), states


def expecting(request: Request, reference: Reference, module: torch.nn.Module) -> Reference:
    """Run `module` on every sample; each run has copies, for a model may change its buffers and its inputs.

    Leaves out samples on which eager fails.
    """
    expected: dict[str, tuple[Tensor, ...]] = {}
    left_out: dict[str, str] = {}
    limit = None
    for name, steps in reference.samples.items():
        started = time.process_time()
        try:
            with torch.no_grad(), request.lowering.eager(), ending_within(limit):
                own = reference.flat(copy.deepcopy(module))
                made = numerics.given_by(own, copy.deepcopy(steps))
        except EndlessError:
            left_out[name] = "eager does not end"
        except Exception as error:
            # On its example the case itself would be at fault. Memory that is missing is no fault of a sample.
            if not expected or shortage.of_memory(error):
                raise
            left_out[name] = f"eager raises {type(error).__name__}"
        else:
            expected[name] = numerics.flatten(made)
        # The first is the example.
        limit = limit or ENDLESS + 100 * (time.process_time() - started)
    left_out |= dict.fromkeys(numerics.without_meaning(expected), "eager is not finite")
    return dataclasses.replace(reference, expected=expected).without(left_out)


def require_function(request: Request, reference: Reference, module: torch.nn.Module) -> None:
    """Raise `UnsteadyError` for a model whose outputs follow from more than its inputs and its buffers.

    A copy that has run another sample runs the example from the same buffers: it gives what a new copy has given.
    """
    own = copy.deepcopy(module)
    flat = reference.flat(own)
    named = [(inner._buffers, name) for inner in own.modules() for name in inner._buffers]
    held = [
        (of, name, state, state.clone())
        for of, name in named
        if (state := of[name]) is not None and is_plain(state)
    ]
    # The last one of a single step: zeros, which come first, leave no trace in what is added up.
    names = [name for name, steps in reference.samples.items() if len(steps) == 1]
    for name in (*names[-1:], *names[:1]):
        try:
            with torch.no_grad(), request.lowering.eager():
                for of, key, state, before in held:
                    numerics.overwrite(state, before)
                    of[key] = state
                given = numerics.flatten(numerics.given_by(flat, copy.deepcopy(reference.samples[name])))
        except Exception as error:
            if shortage.of_memory(error):
                raise
            what = f"raises {type(error).__name__} when called again: {error}"
            raise UnsteadyError(f"its model {what}") from error
        if line := departs(name, reference.expected[name], given):
            raise UnsteadyError(f"its model gives other outputs when called again: {line}")


def departs(sample: str, before: Sequence[Tensor], after: Sequence[Tensor]) -> str:
    """Return the first difference of two runs of a model on one sample; empty where it is none but of sums' orders."""
    if len(before) != len(after):
        return f"{len(after)} outputs ({sample}) where it gave {len(before)}"
    for index, (first, again) in enumerate(zip(before, after, strict=True)):
        most = np.abs(np.nan_to_num(first.wide(), posinf=0.0, neginf=0.0)).max(initial=0.0)
        allowed = AGAIN * float(most) if first.dtype.startswith(("float", "complex")) else 0.0
        difference = Deviation(first, again, allowed)
        if first != again and difference.exceeds_tolerance():
            return difference.line(f"output {index} ({sample})")
    return ""


def held_to(
    request: Request, reference: Reference, quantized: torch.nn.Module, graph: torch.nn.Module | None
) -> Reference:
    """Expect the outputs of the quantized model; the previous ones become the float model's.

    Parameters
    ----------
    graph
        The source of the outputs: a graph also tells what one code of them is worth.
    """
    found = dataclasses.replace(expecting(request, reference, quantized), floats=reference.expected)
    if not isinstance(graph, torch.fx.GraphModule):
        return found
    scales = numerics.output_scales(graph)
    # Inputs that the model changes come before its outputs.
    changed = max(map(len, found.expected.values()), default=len(scales)) - len(scales)
    return dataclasses.replace(found, scales=(*(0.0 for _ in range(changed)), *scales))


def spread(
    request: Request,
    reference: Reference,
    module: torch.nn.Module,
    off: Approximations,
    kernels: frozenset[str] = frozenset(),
) -> Reference:
    """Measure how far rounding alone moves the outputs of the (quantized) eager graph.

    Parameters
    ----------
    off
        See `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS`.
    kernels
        See `executorch_goldens.exporting.numerics.rounding.Rounding`.
    """
    data = Data(request.case.name)
    with request.lowering.eager():
        moved = {
            name: rounding.moved(
                reference.flat(module),
                steps,
                reference.scales,
                data.generator(f"rounding {name}"),
                off,
                kernels,
            )
            for name, steps in reference.samples.items()
        }
    undefined = {
        name: f"eager is undefined: {each.undefined[0]}" for name, each in moved.items() if each.undefined
    }
    return dataclasses.replace(reference, moved=moved).without(undefined)


@dataclass(frozen=True)
class Edge:
    """A lowered program before ``to_executorch``, which rewrites it.

    Attributes
    ----------
    methods
        Methods in the order of their names, which is that of the emitted program.
    graph
        The text of all graphs.
    delegates
        Delegates of all methods.
    """

    methods: Mapping[str, EdgeMethod]
    graph: str
    delegates: tuple[Delegate, ...]

    @classmethod
    def from_manager(cls, manager: EdgeProgramManager, lowering: Lowering | None = None) -> Edge:
        names = sorted(manager.methods)
        programs = {name: manager.exported_program(name) for name in names}
        texts, found = [], []
        for name, program in programs.items():
            several = name if len(names) > 1 else ""
            texts += [f"method {name}:\n"] if several else []
            texts.append(f"{text_of(program.graph_module)}\n")
            found += [
                dataclasses.replace(each, name=f"{several}.{each.name}".lstrip("."))
                for each in delegates(program.graph_module)
            ]
        simulator = lowering.simulator if lowering is not None else None
        methods = {name: EdgeMethod.from_program(program, simulator) for name, program in programs.items()}
        return cls(methods, "".join(texts), tuple(found))

    def emitted(self, program: ExecutorchProgramManager) -> Edge:
        """Return this with the buffers that the emitted program does not set."""
        return dataclasses.replace(
            self,
            methods={
                name: method.emitted(program.exported_program(name)) for name, method in self.methods.items()
            },
        )


@dataclass(frozen=True)
class Program:
    """An emitted program of one or more methods.

    Attributes
    ----------
    pte, data
        Its bytes, and those of its data file; empty where it has none.
    edge
        Its source; None where it came as bytes that nothing here emitted.
    called
        The operators that it calls outside of delegates.
    backends
        The ids of the backends of its delegates.
    elsewhere
        Runs those that the runtime does not.
    off
        See `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS`.
    not_run
        Why it is not run; empty where it is.
    """

    pte: bytes
    edge: Edge | None
    called: tuple[str, ...]
    backends: tuple[str, ...]
    elsewhere: numerics.Elsewhere
    off: Approximations
    not_run: str = ""
    data: bytes = b""


@dataclass(frozen=True)
class ExportProgress:
    """How far an export has come: the stage that begins, and what there is of it then.

    Attributes
    ----------
    references
        References, one for each way in which the program is run.
    edge
        The lowered program; None before and after the stage that emits it.
    made
        Graph and delegates before the program is run.
    log
        Where in the log what runs it begins to write.
    unbounded
        See `executorch_goldens.exporting.numerics.samples.unbounded`.
    result
        The end of the export; None before.
    """

    stage: str
    references: tuple[Reference, ...] = ()
    edge: EdgeProgramManager | None = None
    made: Lowered | None = None
    program: Program | None = None
    log: int | None = None
    unbounded: tuple[str, ...] = ()
    result: Lowered | None = None


def text_of(module: torch.fx.GraphModule) -> str:
    """Return the text of a lowered graph and of those that it refers to."""
    return "\n".join(
        (f"submodule {name}:\n" if name else "") + str(inner.graph) for name, inner in graphs(module)
    )


def graphs(module: torch.fx.GraphModule, name: str = "") -> Iterator[tuple[str, torch.fx.GraphModule]]:
    """Yield (path, graph module): `module` itself, then those its graph refers to (branches of control flow)."""
    yield name, module
    for node in module.graph.nodes:
        if node.op == "get_attr" and isinstance(getattr(module, node.target, None), torch.fx.GraphModule):
            yield from graphs(getattr(module, node.target), f"{name}.{node.target}".lstrip("."))


def delegates(module: torch.fx.GraphModule) -> Iterator[Delegate]:
    """Yield the delegates of the lowered program in the order in which the graph refers to them."""
    for path, owner in graphs(module):
        for node in owner.graph.nodes:
            lowered = getattr(owner, node.target, None) if node.op == "get_attr" else None
            if isinstance(lowered, LoweredBackendModule):
                yield Delegate(
                    name=f"{path}.{node.target}".lstrip("."),
                    backend_id=lowered.backend_id,
                    payload=bytes(lowered.processed_bytes),
                    named_data=compat.named_data(lowered),
                )
