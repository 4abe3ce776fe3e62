"""The way from a sample whose outputs depart to the delegate, and the operator inside it, where that begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Graph, GraphModule, Node

from executorch_goldens.artifact import Beginning, Departure, FirstDeparture, Lowered, Sample, Tensor
from executorch_goldens.exporting.blame import in_a_line
from executorch_goldens.exporting.inside import tosa, xnnpack
from executorch_goldens.exporting.inside.comparison import DelegateComparison
from executorch_goldens.exporting.inside.evaluation import Look, Opened, Values, exceeds, outputs_of
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.arithmetic import Approximations
from executorch_goldens.exporting.observing import NOBODY, Observer, Simulator
from executorch_goldens.zoo.registry import UNDELEGATED

#: Inspectors of delegates, by the id of the backend.
LOOKS: Mapping[str, Look] = {
    "TOSABackend": Look(
        numerics.run_tosa, lambda lowered, inputs, _: tosa.opened(lowered)(inputs)[1], tosa.opened
    ),
    "XnnpackBackend": Look(xnnpack.run_delegate, xnnpack.values, xnnpack.opened),
}

#: Places of a departure outside of delegates.
BEFORE = Beginning(
    "before the delegates", "they compute what their graphs say, and the graphs do not give what eager gives"
)
AFTER = Beginning(
    "", "outside of the delegates: in an operator between them, in the memory plan or in the emitted program"
)
#: The same of a program without delegates.
BEFORE_EMISSION = Beginning(UNDELEGATED, "in the lowered graph, which does not give what eager gives")
EMITTED = Beginning("", f"{UNDELEGATED}: in a kernel, in the memory plan or in the emitted program")
#: Those of which one is the memory plan, and what is left without it.
WITHOUT_PLAN = {
    AFTER: Beginning("", "outside of the delegates: in an operator between them or in the emitted program"),
    EMITTED: Beginning("", f"{UNDELEGATED}: in a kernel or in the emitted program"),
}

#: See `executorch_goldens.artifact.Lowered.unseen`.
Unseen: TypeAlias = tuple[tuple[str, str], ...]
#: Serializes the initial values of the buffers that it is given; no default pass does.
INITIALIZING = "InitializedMutableBufferPass"


@dataclass(frozen=True)
class EdgeMethod:
    """A method of a lowered program as it is before it is emitted: emission rewrites it.

    Attributes
    ----------
    module
        The graph, which refers to the delegates.
    signature
        Its placeholders and outputs.
    held
        See `executorch_goldens.exporting.numerics.programs.held_by`.
    simulator
        Runs its delegates, where `LOOKS` has nothing for them.
    unset
        Once it is emitted: the buffers that it changes, and begins with zeros where the model begins with something
        else.
    """

    module: GraphModule
    signature: ExportGraphSignature
    held: Mapping[str, Any]
    simulator: Simulator | None = None
    unset: tuple[str, ...] = ()

    @classmethod
    def from_program(
        cls, program: torch.export.ExportedProgram, simulator: Simulator | None = None
    ) -> EdgeMethod:
        graph = Graph()
        graph.output(graph.graph_copy(program.graph, {}))
        specs = program.graph_signature
        signature = ExportGraphSignature(list(specs.input_specs), list(specs.output_specs))
        return cls(GraphModule(program.graph_module, graph), signature, numerics.held_by(program), simulator)

    def emitted(self, program: torch.export.ExportedProgram) -> EdgeMethod:
        """Return this with what the emitted program, whose ``et_init_buffer`` marks buffers with data, leaves unset."""
        buffers, changed = self.signature.inputs_to_buffers, {*self.signature.buffers_to_mutate.values()}
        marked = {node.name for node in program.graph.nodes if node.meta.get("et_init_buffer")}
        unset = tuple(
            buffer
            for name, buffer in buffers.items()
            if buffer in changed and name not in marked and bool(self.held[buffer].any())
        )
        return dataclasses.replace(self, unset=unset)

    def look(self, lowered: LoweredBackendModule) -> Look:
        """Return the inspector of a delegate; raise LookupError where there is none."""
        if self.simulator is not None:
            return Look.of_outputs(self.simulator)
        if lowered.backend_id not in LOOKS:
            raise LookupError(f"no inspector for delegates of {lowered.backend_id}")
        return LOOKS[lowered.backend_id]


def in_state(unset: Sequence[str]) -> Beginning:
    """Return the place of a departure that begins with what the program has in buffers before it first runs."""
    named = ", ".join(unset)
    return Beginning(
        "in the state",
        f"{named} of the model starts from other values than zeros, and the .pte has no data for it; "
        f"{INITIALIZING} in the passes of ExecutorchBackendConfig serializes it",
    )


def in_plan(planner: str) -> Beginning:
    """Return the place of a departure that is gone once no two values share memory."""
    return Beginning(
        f"in {planner}", "with a memory plan in which no two values share memory, the program is right"
    )


def unknown(why: str) -> Beginning:
    return Beginning("", f"cannot be told: {why}", is_outside=False)


def first_departing(lowered: Lowered) -> Sample | None:
    """Return the first sample with wrong outputs; None if there is none."""
    return next((sample for sample in lowered.samples if _departs(lowered, sample, sample.outputs)), None)


def beginning(
    method: EdgeMethod,
    lowered: Lowered,
    sample: Sample,
    steps: numerics.Steps,
    off: Approximations,
) -> FirstDeparture:
    """Return where a sample whose outputs depart begins to depart.

    The runtime may end the process over a program that no partitioner would have made.

    Parameters
    ----------
    lowered
        The outputs of the program.
    steps
        Inputs of the sample; only the last is looked into.
    off
        Approximations of the backend; see `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS`.
    """
    walk = _ToTheFirst(method, lowered.bound, off)
    try:
        outputs = walk.run_steps(steps)
    except Exception as error:
        # Whatever a release raises where it is asked for more than an export, the verdict stays.
        return FirstDeparture(sample.name, unknown(in_a_line(error)))
    if walk.found is not None:
        return FirstDeparture(sample.name, walk.found)
    places = (BEFORE, AFTER) if lowered.delegates else (BEFORE_EMISSION, EMITTED)
    return FirstDeparture(sample.name, places[not _departs(lowered, sample, outputs)])


def _departs(lowered: Lowered, sample: Sample, outputs: Sequence[Tensor]) -> bool:
    """Return whether some output has the right dtype and shape, but wrong values."""
    return any(
        (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
        and not expected.dtype.startswith("complex")
        and exceeds(expected.array(), actual.array(), lowered.tolerance(sample, index))
        for index, (expected, actual) in enumerate(zip(sample.expected, outputs, strict=False))
    )


class DelegateInterpreter(numerics.EdgeInterpreter):
    """Runs each delegate of a method in its own runtime, and every other node eagerly."""

    def __init__(self, method: EdgeMethod, observer: Observer = NOBODY) -> None:
        super().__init__(method.module)
        self.method = method
        self.observer = observer

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is executorch_call_delegate:
            lowered, *tensors = args
            return self.call_delegate(lowered, tensors)
        return super().call_function(target, args, kwargs)

    def call_delegate(self, lowered: LoweredBackendModule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        if self.method.simulator is None and lowered.backend_id == numerics.TOSA_BACKEND:
            return numerics.run_tosa(lowered, inputs, self.observer)
        return self.method.look(lowered).run(lowered, inputs)


class DelegateWalk(DelegateInterpreter):
    """Runs a method delegate by delegate, and inspects them.

    Attributes
    ----------
    delegate
        The name of the one that was called last.
    """

    def __init__(self, method: EdgeMethod, bound: float, off: Approximations) -> None:
        super().__init__(method)
        self.bound = bound
        self.off = off
        self.delegate = ""

    def run_node(self, n: Node) -> Any:
        if n.target is executorch_call_delegate:
            self.delegate = str(n.args[0])
        return super().run_node(n)

    def run_steps(self, steps: numerics.Steps) -> tuple[Tensor, ...]:
        """Run the method step by step, the last with its delegates inspected; return its outputs."""
        held = dict(self.method.held)
        for inputs in steps[:-1]:
            numerics.run_edge(DelegateInterpreter(self.method), self.method.signature, held, inputs)
        return numerics.run_edge(self, self.method.signature, held, steps[-1])

    def compared(
        self, lowered: LoweredBackendModule, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> DelegateComparison:
        return DelegateComparison(self.delegate, lowered, inputs, outputs, self.bound, self.off)


class _ToTheFirst(DelegateWalk):
    """Inspects the first delegate that departs from its graph."""

    found: Departure | Beginning | None = None

    def call_delegate(self, lowered: LoweredBackendModule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        look = self.method.look(lowered)
        if self.found is not None:
            # Nothing that follows is looked at.
            return outputs_of(lowered, numerics.evaluate(lowered.original_module, inputs))
        outputs = look.run(lowered, inputs)
        comparison = self.compared(lowered, inputs, outputs)
        if order := comparison.order(outputs):
            self.found = Beginning(
                f"in {self.delegate}, which gives its outputs in a different order than its graph",
                ", ".join(map(str, order)),
            )
        elif comparison.output_departs():
            self.found = comparison.first(look.values(lowered, inputs, outputs))
        return outputs


# Every operator, given its actual inputs: whatever outputs may be off by, it may be off by its own rounding only

#: The samples that operators are looked at on: what they may be given at most, and what they are given mostly.
LOOKED_AT = ("extremes", "drawn")


def chosen(samples: Iterable[str]) -> list[str]:
    """Return the samples that operators are looked at on: `LOOKED_AT`, or else the first.

    >>> chosen(["example", "zeros", "drawn"]), chosen(["example", "zeros"])
    (['drawn'], ['example'])
    """
    names = list(samples)
    return [name for name in LOOKED_AT if name in names] or names[:1]


def looked_into(
    method: EdgeMethod,
    lowered: Lowered,
    samples: Mapping[str, numerics.Steps],
    off: Approximations,
) -> tuple[FirstDeparture | None, Unseen]:
    """Return the first operator of a program beyond its own rounding, and what was not looked into.

    Parameters
    ----------
    lowered
        The outputs of the program.
    samples
        Inputs by name of the sample; of several steps only the last is looked at.
    off
        Approximations of the backend; see `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS`.
    """
    walk = _OverAll(method, lowered.bound, off)
    expected = {sample.name: sample.outputs for sample in lowered.samples}
    begins = None
    for name, steps in samples.items():
        try:
            outputs = walk.run_steps(steps)
        except Exception as error:
            # Whatever a release raises where it is asked for more than an export, the outputs are judged.
            walk.unseen[walk.delegate or "the program"] = in_a_line(error)
            break
        if walk.found is not None:
            begins = FirstDeparture(name, walk.found)
            break
        if outputs != tuple(expected[name]):
            walk.unseen["outside of the delegates"] = (
                "not the same to the last bit as eager's operators there"
            )
    return begins, tuple(walk.unseen.items())


class _OverAll(DelegateWalk):
    """Runs a lowered program and inspects its delegates.

    Attributes
    ----------
    found
        The first departure that an operator makes by itself.
    unseen
        See `executorch_goldens.artifact.Lowered`.
    """

    def __init__(self, method: EdgeMethod, bound: float, off: Approximations) -> None:
        super().__init__(method, bound, off)
        self.found: Departure | None = None
        self.unseen: dict[str, str] = {}
        self._opened: dict[str, Opened] = {}

    def call_delegate(self, lowered: LoweredBackendModule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        outputs, values = self._run(self.method.look(lowered), lowered, inputs)
        comparison = self.compared(lowered, inputs, outputs)
        if self.found is None:
            self.found = comparison.any_by_itself(values)
        return outputs

    def _run(
        self, look: Look, lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor]
    ) -> tuple[list[torch.Tensor], Values]:
        """Run a delegate; where it cannot be looked into, it is as one operator."""
        if self.delegate not in self.unseen:
            try:
                if self.delegate not in self._opened:
                    self._opened[self.delegate] = look.opened(lowered)
                return self._opened[self.delegate](inputs)
            except Exception as error:
                self.unseen[self.delegate] = in_a_line(error)
        return look.run(lowered, inputs), {}
