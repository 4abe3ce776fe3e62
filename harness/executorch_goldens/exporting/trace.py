"""Watches an export from within: which passes run, in which pipeline, which change the graph, which visitors serialize.

What a release has of these is in `exporting.compat`. What counts as a change is a change of the graph's
fingerprint, not what the pass says of itself: a pass that retraces reports a modification whether it made one or not.
Whether lowering changes the model that it is given is watched as well (`Given`).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from executorch.exir.backend.backend_details import PreprocessResult
from executorch.exir.backend.partitioner import PartitionResult
from executorch.exir.backend.utils import WhyNoPartition, WhyNoPartitionReporter
from torch.fx.passes.infra.pass_base import PassResult

from executorch_goldens.artifact import (
    DELEGATE,
    EDGE,
    EXPORTED,
    LOWERED,
    PARTITIONING,
    STAGE,
    Altered,
    PassRun,
    Tensor,
    Watched,
)
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.arrays import array_of
from executorch_goldens.exporting.dialect import operator_of
from executorch_goldens.exporting.observing import Marks
from executorch_goldens.zoo.variations import Omission

#: The pipeline of passes that run outside of all of `compat.pipelines`.
OUTSIDE = "exir"

#: Hexadecimal digits of a fingerprint.
DIGITS = 12

#: Metadata of a node that later passes or serialization act on. The rest says where a node comes from.
METADATA = (
    *("input_qparams", "output_qparams", "delegation_tag", "tosa_dim_order", "_arm_disallow_tfa"),
    *("XNN_FUSED_ACTIVATION", "XNN_NHWC_NODE", "IS_IMPLICIT_Q_DQ_TAG"),
)
WATCHED = frozenset(METADATA)
#: A union of them takes longer to check.
SEQUENCES = (list, tuple)
#: Classes of tensors that have values.
CONSTANTS = (torch.Tensor, torch.nn.Parameter)
#: The text of no arguments: most operators have none by name.
NO_ARGUMENTS = "()"
#: Classes of arguments that hold no others: most are of one of them.
PLAIN = frozenset((int, float, bool, str, type(None)))
ADDRESS = re.compile(r"0x[0-9a-f]+|id=\d+|graph_id=\d+")
#: A symbolic size. torch numbers it by a hash of where it comes from, which for a constant has an address in it.
SYMBOL = re.compile(r"\b[su]\d+\b")


class Fingerprints:
    """Digests of the graphs of one export: operators, edges, arguments, `METADATA`, values of constants; no names."""

    def __init__(self) -> None:
        # A tensor is held with its digest: its address could be reused for a different one.
        self._tensors: dict[int, tuple[torch.Tensor, int, str]] = {}
        # Whether a symbolic size has been seen.
        self._symbolic = False

    def digest(
        self, module: torch.fx.GraphModule, program: torch.export.ExportedProgram | None = None
    ) -> str:
        """Return the digest of a graph and the graphs nested in it.

        Parameters
        ----------
        program
            Holds the values of placeholders for parameters, buffers and constants.
        """
        return hashlib.sha256(self.text(module, program).encode()).hexdigest()[:DIGITS]

    def text(self, module: torch.fx.GraphModule, program: torch.export.ExportedProgram | None) -> str:
        """Return the digested text of a graph: a line per node."""
        lines: list[str] = []
        self._add_lines(lines, module, constants(program) if program is not None else {})
        text = "".join(lines)
        # Few graphs have either, and every pass's are looked at.
        if "0x" in text or "id=" in text:
            text = ADDRESS.sub("", text)
        if self._symbolic:
            symbols: dict[str, str] = {}
            text = SYMBOL.sub(lambda found: symbols.setdefault(found[0], f"s{len(symbols)}"), text)
        return text

    def _add_lines(
        self, lines: list[str], module: torch.fx.GraphModule, placeholders: Mapping[str, torch.Tensor]
    ) -> None:
        numbers: dict[torch.fx.Node, str] = {}
        nodes = list(module.graph.nodes)
        for node in nodes:
            numbers[node] = f"%{len(numbers)}"
        for node in nodes:
            op, owned, called = node.op, None, ""
            if op == "get_attr":
                owned = getattr(module, node.target, None)
            elif op == "placeholder":
                owned = placeholders.get(node.name)
            else:
                called = str(node.target)
            line = (
                f"{op} {called} {_argument(node.args, numbers)}"
                f" {_argument(node.kwargs, numbers) if node.kwargs else NO_ARGUMENTS}"
                f" {self._shape(node.meta.get('val'))}{_metadata(node)} {self._value(owned)}"
            )
            lines.append(f"{line.rstrip()}\n")
            if isinstance(owned, torch.fx.GraphModule):
                self._add_lines(lines, owned, {})

    def _shape(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            shape = str(tuple(value.shape))
            # Numbers have no letters.
            self._symbolic |= value._has_symbolic_sizes_strides and ("s" in shape or "u" in shape)
            return f"{value.dtype} {shape} {value.stride()}"
        return str([self._shape(item) for item in value]) if isinstance(value, SEQUENCES) else ""

    def _value(self, tensor: Any) -> str:
        """Return the digest of a constant's values, which is made again when it was written to."""
        if type(tensor) not in CONSTANTS:
            return ""
        held = self._tensors.get(id(tensor))
        if held is None or held[1] != tensor._version:
            # A single element may have any stride, which a view as bytes does not take.
            flat = tensor.detach().contiguous().as_strided((tensor.numel(),), (1,))
            values = flat.view(torch.uint8).numpy()
            digest = hashlib.sha256(values.tobytes()).hexdigest()[:DIGITS]
            held = self._tensors[id(tensor)] = (tensor, tensor._version, digest)
        return held[2]


def _metadata(node: torch.fx.Node) -> str:
    """Return what a node has of `METADATA`, as text."""
    meta = node.meta
    if WATCHED.isdisjoint(meta):
        return ""
    return "".join([f" {key}={meta[key]}" for key in METADATA if key in meta])


def names(module: torch.fx.GraphModule) -> str:
    """Return the digest of the names of a graph's nodes."""
    return digest_of(node.name for node in module.graph.nodes)


def digest_of(words: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:DIGITS]


def constants(program: torch.export.ExportedProgram) -> dict[str, torch.Tensor]:
    """Return the value of every placeholder for a parameter, a buffer or a constant."""
    targets = {
        spec.arg.name: spec.target
        for spec in program.graph_signature.input_specs
        if spec.target is not None and hasattr(spec.arg, "name")
    }
    values = {**program.constants, **program.state_dict}
    return {name: values[target] for name, target in targets.items() if target in values}


def _argument(value: Any, numbers: Mapping[torch.fx.Node, str]) -> str:
    kind = type(value)
    if kind is torch.fx.Node:
        return numbers[value]
    if kind in PLAIN:
        return str(value)
    if isinstance(value, SEQUENCES):
        # Most items are nodes.
        items = [numbers[item] if type(item) is torch.fx.Node else _argument(item, numbers) for item in value]
        return f"({','.join(items)})"
    if isinstance(value, dict):
        return f"({','.join([f'{key}={_argument(item, numbers)}' for key, item in value.items()])})"
    return str(value)


class Given:
    """The parameters and buffers of a model, as they are when it is given.

    Those that numpy cannot hold are left out: sparse ones, those without memory, those of classes of their own; and
    those made in inference mode, whose writes torch does not count.

    Parameters
    ----------
    states
        Buffers that the model writes to when it runs, which are left out: calibrating and folding run it.
    """

    def __init__(self, module: torch.nn.Module, states: Collection[str]) -> None:
        found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        self._states = {
            name: state for name, state in found.items() if name not in states and is_plain(state)
        }
        self._before = {name: _copy(state) for name, state in self._states.items()}
        self._versions = {name: state._version for name, state in self._states.items()}
        self._writers: dict[str, str] = {}

    def note(self, maker: str) -> None:
        """Attribute changes since the last note to `maker`, and drop those that were undone."""
        for name, state in self._states.items():
            if state._version == self._versions[name]:
                continue
            self._versions[name] = state._version
            if _copy(state) == self._before[name]:
                self._writers.pop(name, None)
            else:
                self._writers.setdefault(name, maker)

    def altered(self) -> Iterator[Altered]:
        """Yield tensors that changed, to the last bit, with the one who changed them."""
        for name, state in self._states.items():
            if (after := _copy(state)) != self._before[name]:
                yield Altered(name, self._before[name], after, self._writers.get(name, ""))


def is_plain(state: torch.Tensor) -> bool:
    """Return whether `state` is a dense tensor in this process's memory, of torch's own class, with a version."""
    own = type(state) in (torch.Tensor, torch.nn.Parameter)
    dense = state.layout is torch.strided and state.device.type == "cpu" and not state.is_quantized
    return own and dense and not state.is_inference()


def _copy(state: torch.Tensor) -> Tensor:
    return Tensor.from_array(array_of(state))


class Watch:
    """A context in which the passes and node visitors of this process are recorded.

    Parameters
    ----------
    capture
        Number, from 1, of the run whose text is kept with its fingerprint; 0 keeps none.
    omission
        The run of a pass that is left out, or of a partitioner whose tags are put in order.

    Attributes
    ----------
    passes
        And partitioners, in order of their end.
    visitors
        ``backend target`` of each visitor that serialized a node, once.
    refusals
        Node to operator and reason, of what the partitioners leave outside.
    making
        The stage that makes what no pass does.
    given
        The model that is lowered; None if nobody asks what becomes of it.
    """

    def __init__(self, capture: int = 0, omission: Omission | None = None) -> None:
        self.capture = capture
        self.omission = omission
        self.kept = ""
        self.making = EXPORTED
        self.given: Given | None = None
        self.passes: list[PassRun] = []
        self.visitors: dict[str, None] = {}
        self.refusals: dict[str, tuple[str, str]] = {}
        self._fingerprints = Fingerprints()
        self._marks: Marks | None = None
        self._pipelines = [OUTSIDE]
        # The program that the running pipeline works on, and the graph that the last pass left, with its fingerprint.
        self._program: torch.export.ExportedProgram | None = None
        self._last: tuple[torch.fx.GraphModule, str] | None = None
        self._stack = ExitStack()
        # How many passes and partitioners have begun, and the number of each that has not ended.
        self._begun = 0
        self._running: dict[int, int] = {}

    def __enter__(self) -> Watch:
        for pipeline in compat.pipelines():
            self._wrap(pipeline.owner, pipeline.method, functools.partial(self._in_pipeline, pipeline.name))
        for partitioner in compat.partitioners():
            self._wrap(partitioner, "partition", self._in_partitioner)
        self._wrap(WhyNoPartition, "__call__", self._in_refusal)
        self._wrap(WhyNoPartitionReporter, "report_reject", self._in_refusal)
        for cls in compat.pass_classes():
            self._wrap(cls, "__call__", self._in_pass)
        for planner in compat.planners():
            self._wrap(planner, "run", self._in_planner)
        for backend, visitors in compat.visitor_classes().items():
            # Some inherit the method: wherever it is defined, it is wrapped once.
            definers = {
                cls for visitor in visitors.values() for cls in visitor.__mro__ if "define_node" in vars(cls)
            }
            for definer in definers:
                self._wrap(definer, "define_node", functools.partial(self._in_visitor, backend))
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def mark(self, marks: Marks) -> None:
        """Let `marks` see the graphs, and what becomes of them, until the context ends."""
        self._marks = marks
        self._wrap(PreprocessResult, "__init__", self._in_result)

    def result(self) -> Watched:
        return Watched(
            tuple(self.passes),
            tuple(self.visitors),
            self.kept,
            tuple(self.refusals.values()),
            tuple(self._marks.delegates) if self._marks is not None else (),
        )

    def stage(self, name: str, made: torch.export.ExportedProgram | bytes) -> None:
        """Record the result of a stage of the export."""
        if isinstance(made, bytes):
            run = PassRun(STAGE, name, hashlib.sha256(made).hexdigest()[:DIGITS], True)
            if self._marks is not None and name.startswith(DELEGATE):
                self._marks.delegate(made)
        else:
            self._note(made.graph_module, name)
            digest = self._fingerprints.digest(made.graph_module, made)
            run = PassRun(STAGE, name, digest, True, names(made.graph_module))
            self._keep(made.graph_module, made)
        self.passes.append(run)

    def _note(self, module: torch.fx.GraphModule, maker: str) -> None:
        if self.given is not None:
            self.given.note(maker)
        if self._marks is not None:
            self._marks.note(module, maker)

    def _keep(self, module: torch.fx.GraphModule, program: torch.export.ExportedProgram | None) -> None:
        if len(self.passes) + 1 == self.capture:
            self.kept = self._fingerprints.text(module, program)

    def _wrap(self, owner: type, name: str, around: Callable[..., Any]) -> None:
        """Replace a method by `around`, which is called with the method, its instance and its arguments."""
        method = vars(owner)[name]

        @functools.wraps(method)
        def wrapper(instance: Any, *args: Any, **kwargs: Any) -> Any:
            return around(method, instance, *args, **kwargs)

        self._stack.enter_context(mock.patch.object(owner, name, wrapper))

    def _in_pipeline(
        self, pipeline: str, method: Callable[..., Any], instance: Any, *args: Any, **kwargs: Any
    ) -> Any:
        program = self._program
        given = (*args, getattr(instance, "exported_program", None))
        self._program = next(
            (value for value in given if isinstance(value, torch.export.ExportedProgram)), None
        )
        self._pipelines.append(pipeline)
        try:
            result = method(instance, *args, **kwargs)
            if self._marks is not None and self._program is not None:
                self._marks.constants = frozenset(constants(self._program))
            return result
        finally:
            self._pipelines.pop()
            self._program = program

    def _in_pass(
        self,
        method: Callable[..., Any],
        instance: Any,
        module: torch.fx.GraphModule,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with self._number(instance) as start:
            if self.omission is not None and self.omission.start == start:
                return PassResult(module, False)
            before = self._fingerprint(instance, module)
            self._note(module, self.making)
            self._last = None
            result = method(instance, module, *args, **kwargs)
            left = module if result is None else result.graph_module
            after = self._fingerprint(instance, left)
            self._last = (left, after)
            self._keep(left, self._program)
            name = type(instance).__name__
            self._note(left, name)
            self.passes.append(PassRun(self._pipelines[-1], name, after, before != after, names(left), start))
            return result

    @contextmanager
    def _number(self, instance: Any) -> Iterator[int]:
        """Give the number of the run that `instance` begins, or is in: a class may call the method of its base."""
        if id(instance) in self._running:
            yield self._running[id(instance)]
            return
        self._begun += 1
        self._running[id(instance)] = self._begun
        try:
            yield self._begun
        finally:
            del self._running[id(instance)]

    def _fingerprint(self, instance: Any, module: torch.fx.GraphModule) -> str:
        """Return the fingerprint of the input or output of a pass.

        Between two passes of a pipeline nothing works on the graph: what one left the next one gets.
        """
        if self._last is not None and self._last[0] is module and len(self._pipelines) > 1:
            return self._last[1]
        # Some pipelines work on a shallow copy of the program, which only the passes know.
        program = getattr(instance, "exported_program", None)
        if isinstance(program, torch.export.ExportedProgram):
            self._program = program
        return self._fingerprints.digest(module, self._program)

    def _in_partitioner(self, method: Callable[..., Any], instance: Any, program: Any) -> PartitionResult:
        """Note the tags in the order in which backend lowering will follow them: no graph shows it."""
        self.stage(EDGE, program)
        self.making = LOWERED
        with self._number(instance) as start:
            result: PartitionResult = method(instance, program)
        if self.omission is not None and self.omission.start == start:
            result.partition_tags = {tag: result.partition_tags[tag] for tag in self.omission.tags}
        tags = " ".join(result.partition_tags)
        placed = digest_of(str(node.meta.get("delegation_tag")) for node in program.graph.nodes)
        self.passes.append(PassRun(PARTITIONING, type(instance).__name__, tags, bool(tags), placed, start))
        return result

    def _in_planner(self, method: Callable[..., Any], instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Note the memory plan, which is no part of a graph and which no golden's trace has."""
        result = method(instance, *args, **kwargs)
        plan = ADDRESS.sub("", "".join(compat.plan_of(result.graph_module)))
        if len(self.passes) + 1 == self.capture:
            self.kept = plan
        self.passes.append(PassRun(OUTSIDE, type(instance).__name__, digest_of([plan]), False))
        return result

    def _in_refusal(
        self, method: Callable[..., Any], instance: Any, node: torch.fx.Node, reason: str
    ) -> None:
        """Record a partitioner's first answer for a node; several checks may refuse it."""
        if node.op == "call_function":
            self.refusals.setdefault(node.name, (str(operator_of(node.target)), " ".join(reason.split())))
        method(instance, node, reason)

    def _in_visitor(
        self,
        backend: str,
        method: Callable[..., Any],
        instance: Any,
        node: torch.fx.Node,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        self.visitors[f"{backend} {instance.target}"] = None
        result = method(instance, node, *args, **kwargs)
        if self._marks is not None:
            self._marks.visited(node, (*args, *kwargs.values()))
        return result

    def _in_result(
        self, method: Callable[..., Any], instance: PreprocessResult, *args: Any, **kwargs: Any
    ) -> None:
        """Note that a backend has serialized a partition."""
        method(instance, *args, **kwargs)
        assert self._marks is not None
        self._marks.serialized(instance.processed_bytes)
