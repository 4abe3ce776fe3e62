"""The harness's recipe from a case to a lowered program, and its runs."""

from __future__ import annotations

import copy
import dataclasses
import math
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import FrameType
from typing import Any, TypeVar

import torch
from executorch.exir import EdgeProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens.artifact import (
    DELEGATE,
    EDGE,
    EXPORTED,
    IMPRECISE,
    LOWERED,
    QUANTIZED,
    Beginning,
    Delegate,
    Failure,
    Inside,
    Lost,
    Lowered,
    Omission,
    Sample,
    Tensor,
)
from executorch_goldens.decode import Schemas
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting import compat, kernels, tosa_validation
from executorch_goldens.exporting.apart import ApartError, run_apart
from executorch_goldens.exporting.blame import handed_on, own_error
from executorch_goldens.exporting.calls import Call
from executorch_goldens.exporting.data import Data, Example, example_of
from executorch_goldens.exporting.ending import EndlessError, ending_within
from executorch_goldens.exporting.given import Given
from executorch_goldens.exporting.inside import beginning, operators, tosa
from executorch_goldens.exporting.numerics import arithmetic, loading, narrow, rounding
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.loss import losses
from executorch_goldens.exporting.numerics.measuring import measured
from executorch_goldens.exporting.numerics.quantizing import convert, export_program
from executorch_goldens.exporting.numerics.samples import alone, samples_of, unbounded
from executorch_goldens.exporting.numerics.walking import Walker, nothing_runs
from executorch_goldens.exporting.observing import NOBODY, Observer
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.exporting.trace import Watch
from executorch_goldens.files import logged, shortage
from executorch_goldens.goldens.accuracy import worst
from executorch_goldens.goldens.causes import without_sources
from executorch_goldens.zoo.registry import SELECTIVE, Case
from executorch_goldens.zoo.targets import REFERENCE_MODEL, RUNTIME

T = TypeVar("T")

#: The stage in which a case is built and its model is run.
MODEL = "model"
#: Seconds of processor time that looking for the operator that begins a departure may take: a third of what an export
#: may.
LOOKING = 60.0
#: The runtime's message for an input larger than the planned memory.
BOUNDED = "Attempted to resize a bounded tensor"
#: Seconds of processor time after which a model does not end on a sample, beside a hundred times what it takes on its
#: example.
ENDLESS = 10.0


@dataclasses.dataclass(frozen=True)
class Ran:
    """The result of running a program.

    Attributes
    ----------
    outputs
        By name of the sample.
    not_run, loads, in_eager
        See `Lowered`.
    """

    outputs: Mapping[str, tuple[Tensor, ...]] = dataclasses.field(default_factory=dict)
    not_run: str = ""
    loads: tuple[str, ...] = ()
    in_eager: tuple[str, ...] = ()


class Export:
    """One export of one case for one target; `stage` says how far it came.

    Attributes
    ----------
    samples
        Steps to run, by sample name; the outputs of the last count. None where the program is not to be run.
    expected
        For each of them, the outputs of the eager model or, once quantized, of the quantized eager graph.
    moved
        For each of them, how far rounding alone moves the outputs.
    floats
        For each of them, the outputs of the model before it is quantized; none where it is not.
    bound
        In place of the target's.
    off
        See `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS`.
    kernels
        See `executorch_goldens.exporting.numerics.rounding.Rounding`.
    narrow
        A copy of the (quantized) eager graph, if it has values of a narrow type.
    scales, codes, unjudged
        See `Lowered`.
    unfolded
        Quantizes the model again, its weights in the graph; None where nothing is quantized.
    made
        Graph and delegates before it is run.
    program
        The lowered program before it is emitted, once there is one that is to be run.
    unset
        See `executorch_goldens.exporting.inside.beginning.unset`.
    log
        Where in the log what runs it begins to write.
    call
        The arguments of the model; the steps of a sample are the tensors of it.
    methods
        The method that each step of a sample runs, by its name; nothing where all run the one there is.
    unbounded
        See `executorch_goldens.exporting.numerics.samples.unbounded`.
    watch
        Notes the stages; enter it to have passes and node visitors noted as well.
    observer
        Sees what is run.
    """

    def __init__(
        self,
        case: Case,
        lowering: Lowering,
        capture: int = 0,
        execute: bool = True,
        bound: float | None = None,
        omission: Omission | None = None,
        observer: Observer = NOBODY,
    ) -> None:
        self.case = case
        self.executing = execute
        self.lowering = lowering
        self.target = lowering.target
        self.bound = self.target.bound if bound is None else bound
        self.off = arithmetic.APPROXIMATIONS.get(self.target.backend, {})
        self.stage = MODEL
        self.kernels: frozenset[str] = frozenset()
        self.narrow: torch.fx.GraphModule | None = None
        self.samples: dict[str, numerics.Steps] = {}
        self.expected: dict[str, tuple[Tensor, ...]] = {}
        self.moved: dict[str, rounding.Moved] = {}
        self.floats: dict[str, tuple[Tensor, ...]] = {}
        self.scales: tuple[float, ...] = ()
        self.codes: tuple[Tensor, ...] = ()
        self.unjudged: tuple[tuple[str, str], ...] = ()
        self.unfolded: Callable[[], torch.fx.GraphModule] | None = None
        self.made: Lowered | None = None
        self.program: beginning.Program | None = None
        self.unset: tuple[str, ...] = ()
        self.log: int | None = None
        self.call = Call.of((), {})
        self.methods: dict[str, tuple[str, ...]] = {}
        self.unbounded: tuple[str, ...] = ()
        self.watch = Watch(capture, omission)
        self.observer = observer

    def run(self) -> Lowered:
        """Export, lower, emit and run; whatever the release raises passes through."""
        example = self.lowering.cast(example_of(self.case))
        self.unbounded = unbounded(example)
        edge = self.lower(example)
        self.made = self.unexecuted(edge.exported_program().graph_module)
        program = edge.exported_program()
        elsewhere = numerics.Elsewhere(
            program.graph_module, self.target.runs, self.observer, self.lowering.simulator
        )
        not_run = self.beyond() if self.executing else ""
        if self.executing:
            # Emission rewrites the lowered program in place: what looks into it has a copy.
            self.program = beginning.Program.of(program, self.lowering.simulator)
        self.stage = "emit"
        emitted = edge.to_executorch()
        if self.program is not None:
            self.unset = beginning.unset(self.program, emitted.exported_program())
        pte = bytes(emitted.buffer)
        self.watch.stage("pte", pte)
        self.made = dataclasses.replace(self.made, pte=pte)
        self.stage, self.log = "run", logged.end()
        if self.target.runs == RUNTIME and self.executing:
            not_run = numerics.beyond_runtime(emitted.executorch_program)
        ran = self.ran(pte, emitted.executorch_program, not_run or self.left_out, elsewhere)
        return dataclasses.replace(
            self.made,
            samples=tuple(self.sample(name, given) for name, given in ran.outputs.items()),
            not_run=ran.not_run,
            in_eager=ran.in_eager,
            altered=tuple(self.watch.given.altered()) if self.watch.given is not None else (),
            unjudged=self.unjudged,
            loads=ran.loads,
            metric=measured(example, ran.outputs, self.floats or self.expected),
        )

    def unexecuted(self, lowered: torch.fx.GraphModule) -> Lowered:
        """Return the graph and the delegates of the lowered program, before it is emitted and run."""
        graph = text_of(lowered)
        partitions = tuple(delegates(lowered))
        for index, delegate in enumerate(partitions):
            self.watch.stage(f"{DELEGATE}{index}", delegate.payload)
        self.watch.stage(LOWERED, graph.encode())
        schemas = tuple(map(str, Schemas.installed().places))
        floor, least = self.target.floor, self.case.sqnr.get(self.target.name, -math.inf)
        # A case that asks for all the SQNR of its target is judged by that.
        by_sqnr = floor is not None and least >= floor
        limit = math.inf if by_sqnr else self.case.imprecise.get(self.target.name, IMPRECISE)
        found = tosa_validation.validation(lowered, self.target.specification) if self.executing else None
        tosa_validation.tell(found)
        return Lowered(
            graph=graph + "\n",
            delegates=partitions,
            pte=b"",
            samples=(),
            bound=self.bound,
            schemas=schemas,
            scales=self.scales,
            codes=self.codes,
            unjudged=self.unjudged,
            limit=limit,
            validation=found,
        )

    def beyond(self) -> str:
        """Return what nothing here runs of the delegates of the program; empty if nothing."""
        assert self.made is not None
        if self.target.runs == RUNTIME:
            return ""
        if self.target.runs == REFERENCE_MODEL:
            return numerics.beyond_reference_model(self.made.delegates)
        return numerics.beyond_simulator(self.made.delegates, self.lowering.simulator)

    def ran(self, pte: bytes, program: Any, not_run: str, elsewhere: numerics.Elsewhere) -> Ran:
        """Run a ``.pte`` on each sample: in ExecuTorch's runtime, and what this lacks elsewhere.

        Parameters
        ----------
        program
            Its source, an `executorch.exir.schema.Program`.
        """
        if not_run or not self.samples:
            return Ran(not_run=not_run)
        if self.target.runs != RUNTIME and not kernels.load():
            # Nothing here runs what was emitted: its source is run before it is.
            assert self.program is not None
            with self.lowering.eager():
                run = partial(numerics.in_reference_model, self.program, observer=self.observer)
                return Ran(self.outputs(run), self.left_out)
        in_eager = self.in_eager(numerics.operators_of(program))
        if not_run := nothing_runs(in_eager):
            return Ran(not_run=not_run)
        if not in_eager and not elsewhere.takes_any(program):
            outputs = self.outputs(lambda steps: numerics.in_runtime(pte, self.call.for_runtime(steps)), pte)
            given = {name: self.call.for_runtime(steps) for name, steps in self.samples.items()}
            loads = loading.differences(pte, given, outputs, LOOKING) if self.target.runs == RUNTIME else ()
            return Ran(outputs, loads=loads)
        walker = Walker(pte, elsewhere)
        with self.lowering.eager():
            outputs = self.outputs(lambda steps: numerics.flatten(walker.run(self.call.for_runtime(steps))))
        return Ran(outputs, self.left_out, in_eager=in_eager)

    @handed_on
    def in_eager(self, called: Iterable[str]) -> tuple[str, ...]:
        """Return the operators that run in eager; raise RuntimeError for those that the product has no kernel for."""
        lacking = numerics.without_kernels(called)
        if lacking and self.case.kernels == SELECTIVE:
            raise RuntimeError(f"the runtime has no kernel for {', '.join(lacking)}")
        return lacking

    def sample(self, name: str, given: tuple[Tensor, ...]) -> Sample:
        """Return the record of a sample with the program's outputs `given`."""
        return Sample(
            name,
            self.expected[name],
            given,
            spreads=self.moved[name].spreads,
            floats=self.floats.get(name, ()),
            shifts=self.moved[name].shifts,
            alone=alone(self.samples, name),
        )

    @property
    def left_out(self) -> str:
        """Why there is no sample left; empty where there is one."""
        return "" if self.samples or not self.unjudged else self.unjudged[0][1]

    def outputs(
        self, run: Callable[[numerics.Steps], tuple[Tensor, ...]], pte: bytes = b""
    ) -> dict[str, tuple[Tensor, ...]]:
        """Return the program's outputs for each sample; each run has copies.

        Samples on which TOSA leaves open what comes out are left out, if eager has no number there either.
        """
        made = {}
        for name, steps in dict(self.samples).items():
            self.observer.runs(name, pte)
            try:
                made[name] = run(copy.deepcopy(steps))
            except RuntimeError as error:
                beyond = self.moved[name].beyond
                # Lowering has to give a number wherever the model does.
                if not numerics.is_unpredictable(error) or not beyond:
                    raise
                self.leave_out(name, f"TOSA leaves open what comes out: {beyond[0]}")
            else:
                self.observer.ran(name, made[name])
        return made

    def looked_into(self, result: Lowered | Failure) -> Lowered | Failure:
        """Return a result with the start of its departure, and the losses of quantization."""
        if isinstance(result, Failure):
            looks = result.stage in ("lower", "emit")
            return dataclasses.replace(result, lost=self.lost()) if looks else result
        result = self.with_beginning(result)
        given = result.samples[0].outputs if result.samples else None
        return dataclasses.replace(result, lost=self.lost(given))

    @property
    def constants(self) -> tuple[Any, ...]:
        """The inputs that are no tensors."""
        return self.call.constants

    def with_beginning(self, lowered: Lowered) -> Lowered:
        """Return `lowered` with the start of its departure, or the findings of its operators if there is none."""
        if self.program is None or not lowered.samples:
            return lowered
        if sample := beginning.first_departing(lowered):
            begins = self._apart(
                partial(
                    beginning.beginning, self.program, lowered, sample, self.samples[sample.name], self.off
                ),
                lambda why: Beginning(sample.name, f"cannot be told: {why}"),
            )
            if self.unset and begins.where == beginning.AFTER:
                begins = dataclasses.replace(begins, where=beginning.in_state(self.unset))
            return dataclasses.replace(lowered, begins=begins)
        if not lowered.moves_far():
            # The tolerance of the outputs hides no operator, and to look at each takes as long as an export.
            return lowered
        chosen = {name: self.samples[name] for name in operators.chosen(self.samples)}
        found, inside = self._apart(
            partial(operators.looked_into, self.program, lowered, chosen, self.off),
            lambda why: (None, Inside(tuple(chosen), 0, (("the program", why),))),
        )
        return dataclasses.replace(lowered, begins=found, inside=inside)

    def _apart(self, look: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        """Return the result of `look` in a process of its own, or a substitute if that process dies."""
        try:
            with self.lowering.eager():
                return run_apart(look, LOOKING)
        except ApartError as error:
            return otherwise(str(error))

    def lost(self, outputs: Sequence[Tensor] | None = None) -> Lost | None:
        """Return the loss of quantization on the example, where it leaves an output below the floor.

        Parameters
        ----------
        outputs
            The outputs of the program; by default those of the quantized eager graph.
        """
        floor = self.case.sqnr.get(self.target.name, self.target.floor)
        name = next(iter(self.samples), "")
        if floor is None or self.unfolded is None or name not in self.expected:
            return None
        floats, unfolded = self.floats[name], self.unfolded
        found = worst(floats, self.expected[name] if outputs is None else outputs)
        if found is None or found[1] >= floor:
            return None
        index, ratio = found

        def look() -> tuple[str, ...]:
            with torch.no_grad():
                return losses(unfolded(), self.call, self.samples[name], floats, index, floor)

        try:
            with self.lowering.eager():
                return Lost(index, ratio, floor, run_apart(look, LOOKING))
        except ApartError as error:
            why = f"which quantization loses it is not known: {error}"
            return Lost(index, ratio, floor, (why,), named=False)

    def lower(self, example: Example) -> EdgeProgramManager:
        """Run eagerly, export, quantize where the target does, and lower."""
        self.call = example.call
        if self.executing:
            with torch.no_grad(), self.lowering.eager():
                states = numerics.states(example.module, example.call, example.tensors)
            self.samples = dict(samples_of(self.case, example, remembers=bool(states)))
            self.watch.given = Given(example.module, states)
        self.expect(example.module)
        self.stage = "export"
        program = example.program or export_program(example.module, example)
        self.watch.stage(EXPORTED, program)
        if self.lowering.quantizer is not None:
            self.stage = "quantize"
            self.watch.making = QUANTIZED
            program = self.quantize(program, example)
            self.watch.stage(QUANTIZED, program)
        else:
            self.spread(compat.graph_module(program))
        self.stage = "lower"
        self.watch.making = EDGE
        with tosa.noted() if self.executing and self.target.runs == REFERENCE_MODEL else nullcontext():
            edge = self.lowering.lower(program)
        self.take_kernels(edge.exported_program().graph_module)
        return edge

    def take_kernels(self, lowered: torch.fx.GraphModule) -> None:
        """Measure again how far rounding moves the outputs, if kernels outside of delegates add up in a narrow type."""
        self.kernels = narrow.outside(node for _, inner in graphs(lowered) for node in inner.graph.nodes)
        if self.kernels and self.narrow is not None:
            self.spread(self.narrow)

    def expect(self, module: torch.nn.Module) -> None:
        """Run `module` on every sample; each run has copies, for a model may change its buffers and its inputs.

        Drops samples on which eager fails.
        """
        self.expected = {}
        limit = None
        for name, steps in dict(self.samples).items():
            started = time.process_time()
            try:
                with torch.no_grad(), self.lowering.eager(), ending_within(limit):
                    own = self.call.flat(copy.deepcopy(module))
                    made = numerics.given_by(own, copy.deepcopy(steps))
            except EndlessError:
                self.leave_out(name, "eager does not end")
            except Exception as error:
                # On its example the case itself would be at fault. Memory that is missing is no fault of a sample.
                if not self.expected or shortage.of_memory(error):
                    raise
                self.leave_out(name, f"eager raises {type(error).__name__}")
            else:
                self.expected[name] = numerics.flatten(made)
            # The first is the example.
            limit = limit or ENDLESS + 100 * (time.process_time() - started)
        for name in numerics.without_meaning(self.expected):
            self.leave_out(name, "eager is not finite")

    def way_out(self, message: str) -> str:
        """Return advice for the runtime's message, where the case can help; empty otherwise."""
        if BOUNDED not in message or not self.unbounded:
            return ""
        return (
            f"; memory is planned for the example's size of {', '.join(self.unbounded)}, which has no bound: "
            "declare max= for it in dynamic_shapes"
        )

    def failed(self, error: BaseException) -> Failure:
        """Describe an error that ended the export; raise OwnError for one of the harness's own code."""
        result = failure(self.stage, error)
        if own := own_error(self.stage, first_cause(error), error):
            # Till the model is there and has run, what cannot be used is what the case gives.
            if self.stage != MODEL:
                raise own from error
            used = f"{result.message} (raised where the harness takes what the case gives: {own.where})"
            result = dataclasses.replace(result, message=normalise(used))
        if self.stage != "run":
            return result
        log = logged.since(self.log)
        first, *rest = result.message.split("\n")
        explained = normalise(logged.explained(first, log)) + self.way_out(first + log)
        return dataclasses.replace(result, message="\n".join((explained, *rest)), made=self.made)

    def leave_out(self, sample: str, why: str) -> None:
        del self.samples[sample]
        self.expected.pop(sample, None)
        self.unjudged += ((sample, why),)

    def spread(self, module: torch.nn.Module) -> None:
        """Measure how far rounding alone moves the outputs of the (quantized) eager graph."""
        if isinstance(module, torch.fx.GraphModule) and narrow.has_narrow(module.graph.nodes):
            # Lowering may write to the weights.
            self.narrow = copy.deepcopy(module)
        with self.lowering.eager():
            self.moved = {
                name: rounding.moved(
                    self.call.flat(module),
                    steps,
                    self.scales,
                    Data(self.case.name).generator(f"rounding {name}"),
                    self.off,
                    self.kernels,
                )
                for name, steps in self.samples.items()
            }
        for name, moved in self.moved.items():
            if moved.undefined:
                self.leave_out(name, f"eager is undefined: {moved.undefined[0]}")

    def hold_to(self, quantized: torch.nn.Module, graph: torch.nn.Module | None) -> None:
        """Expect the outputs of the quantized model; the previous ones become the float model's.

        Parameters
        ----------
        graph
            The source of the outputs: a graph also tells what one code of them is worth.
        """
        self.floats = self.expected
        self.expect(quantized)
        if not isinstance(graph, torch.fx.GraphModule):
            return
        scales = numerics.output_scales(graph)
        # Inputs that the model changes come before its outputs.
        changed = max(map(len, self.expected.values()), default=len(scales)) - len(scales)
        self.scales = (*(0.0 for _ in range(changed)), *scales)

    def quantize(
        self, program: torch.export.ExportedProgram, example: Example
    ) -> torch.export.ExportedProgram:
        """Annotate, calibrate, train where the case does, convert and export again."""
        converting = partial(convert, self.lowering, self.case, example, program)
        converted = converting()
        self.unfolded = partial(converting, fold=False)
        self.hold_to(converted, converted)
        self.spread(converted)
        if self.case.constant_outputs and self.target.runs == REFERENCE_MODEL:
            self.codes = numerics.output_codes(converted)
        return export_program(converted, example)


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


#: Parts of a message that differ from run to run or from machine to machine, and what replaces them.
MASKS = (
    (re.compile(r'\bFile "[^"\n]*/'), 'File "…/'),
    # Numbered by how many graphs the process has compiled.
    (re.compile(r"<eval_with_key>\.\d+"), "<eval_with_key>"),
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x…"),
    # Of absolute paths only, and of what follows the slashes of an address: ``int8/int16/int32`` is no path.
    (re.compile(r"(?:(?<![^\s'\"`:=,;|<>()\[\]{}])|(?<=:/))(?:/[\w.+@-]+)+/(?=[\w.+-]+)"), "…/"),
    (re.compile(r"\bline \d+"), "line …"),
    (re.compile(r"\.py:\d+"), ".py:…"),
    (re.compile(r"\b(graph_)?id=\d{9,}"), r"\1id=…"),
    # Numbers operators by how many autograd has seen in the process.
    (re.compile(r"('seq_nr' =) \d+"), r"\1 …"),
)


#: A printed set; a dictionary has colons with a space after them, and names of operators two without.
SET = re.compile(r"\{((?:[^{}:]|:(?! ))*)\}")


def normalise(message: str) -> str:
    """Take addresses, directories, line numbers and source lines out of `message`, and the order of printed sets.

    >>> normalise("cannot open /opt/env/lib/x.py:12 for <Pass object at 0x7f0123456789>")
    'cannot open …/x.py:… for <Pass object at 0x…>'
    >>> normalise("one of {torch.int8, torch.bool} is needed")
    'one of {torch.bool, torch.int8} is needed'
    >>> normalise("{'b::c', 'a::d'} but not {'b': 2, 'a': 1}")
    "{'a::d', 'b::c'} but not {'b': 2, 'a': 1}"
    """
    for pattern, replacement in MASKS:
        message = pattern.sub(replacement, message)
    # A set prints in the order of its hashes.
    message = SET.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", message)
    return without_sources("\n".join(line.rstrip() for line in message.strip().splitlines()))


def first_cause(error: BaseException) -> BaseException:
    """Return the first cause of `error`; for the harness's own errors, itself."""
    seen = {id(error)}
    while (
        not isinstance(error, HarnessError)
        and error.__cause__ is not None
        and id(error.__cause__) not in seen
    ):
        error = error.__cause__
        seen.add(id(error))
    return error


def failure(stage: str, error: BaseException) -> Failure:
    """Describe `error` by its invariant parts: class, normalised message, pass and function.

    Pass managers raise "An error occurred when running the ... pass" from the error itself: the cause is described.
    """
    cause = first_cause(error)
    frames = [frame for link in (error, cause) for frame, _ in traceback.walk_tb(link.__traceback__)]
    backend_frames = [frame for frame in frames if _module(frame).startswith("executorch.")]
    passes = [name for frame in backend_frames if (name := _pass_name(frame)) is not None]
    return Failure(
        stage=stage,
        type=f"{type(cause).__module__}.{type(cause).__qualname__}".removeprefix("builtins."),
        message=normalise(str(cause)),
        pass_name=passes[-1] if passes else None,
        function=(
            f"{_module(backend_frames[-1])}.{backend_frames[-1].f_code.co_name}" if backend_frames else None
        ),
        traceback="".join(traceback.format_exception(error)),
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


#: Base classes, by name, of what a maintainer calls a pass: graph passes, partitioners, node visitors.
PASS_BASES = frozenset({"PassBase", "Partitioner", "NodeVisitor", "_ExportPassBase"})


def _pass_name(frame: FrameType) -> str | None:
    owner: Any = frame.f_locals.get("self")
    bases = {base.__name__ for base in type(owner).__mro__}
    return type(owner).__name__ if bases & PASS_BASES else None
