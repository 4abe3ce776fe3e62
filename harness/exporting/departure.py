"""Which operator begins a departure: values inside the delegates, compared with those of the graphs they were made of.

A delegate keeps the graph that it was lowered from. That graph is run eagerly on what the delegate was given, and each
of its values is compared with the tensor that the delegate holds it in. From the outputs that depart, the way leads
back through tensors that depart. The first of them whose operator, run eagerly on the delegate's own values, gives
something else is where it begins: what only hands a difference on does not.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Graph, GraphModule, Node

from harness.artifact import ONE_CODE, TOUCHED, Beginning, Departure, Lowered, Sample, Tensor, tolerance_of
from harness.exporting import inside_tosa, inside_xnnpack, numerics, rounding
from harness.exporting.inside import Held, Look, Values

#: What looks into a delegate, by the id of its backend.
LOOKS: Mapping[str, Look] = {
    "TOSABackend": Look(numerics.run_tosa, inside_tosa.values),
    "XnnpackBackend": Look(inside_xnnpack.run, inside_xnnpack.values),
}

#: Dtypes of indices: a delegate may hold those of the graph in fewer bits.
INDICES = frozenset({torch.int32, torch.int64})

#: Operators of the edge dialect that both backends fold into the constants of the convolution before them.
FOLDED = frozenset({exir_ops.edge.aten._native_batch_norm_legit_no_training.default})

#: Where a departure begins that no delegate makes.
BEFORE = (
    "before the delegates: they compute what their graphs say, and the graphs do not give what eager gives"
)
AFTER = "outside of the delegates: in an operator between them, in the memory plan or in the emitted program"

_Array = np.ndarray[Any, np.dtype[np.float64]]


def exceeds(expected: _Array, actual: _Array, tolerance: _Array) -> bool:
    """Whether a number is farther from what is expected; where that is not finite, nothing is expected."""
    judged = np.isfinite(expected)
    allowed = np.broadcast_to(tolerance, expected.shape)[judged]
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(actual[judged] - expected[judged])
    return bool((np.nan_to_num(difference, nan=np.inf, posinf=np.inf) > allowed).any())


@dataclass(frozen=True)
class Evaluated:
    """A delegate's graph, run eagerly.

    Attributes
    ----------
    values
        What each node gives, by its name.
    tolerances
        How far a delegate's value may be from it, in real numbers: of each element, or of all.
    """

    values: Mapping[str, Any]
    tolerances: Mapping[str, _Array]


def evaluate(
    program: torch.export.ExportedProgram,
    inputs: Sequence[torch.Tensor],
    given: Mapping[str, torch.Tensor],
    bound: float,
    off: rounding.Approximations,
) -> Evaluated:
    """Run a delegate's graph, and measure how far rounding alone moves each value; see `harness.exporting.rounding`.

    Parameters
    ----------
    given
        By name of a node: what the nodes after it take in place of what it gives. No rounding before it counts then.
    bound, off
        Beside rounding, as for the outputs of the whole program.
    """
    values = numerics.evaluate(program, inputs, given)
    nodes = {node.name: node for node in program.graph.nodes if isinstance(values[node.name], torch.Tensor)}
    wanted = {name: real(node, values[name]) for name, node in nodes.items()}
    spreads = {name: np.zeros(numbers.shape) for name, (numbers, _) in wanted.items()}
    generator = np.random.default_rng(0)
    for direction in rounding.RUNS:
        own = [tensor.clone() for tensor in inputs]
        held = {name: tensor.clone() for name, tensor in given.items()}
        with rounding.Rounding([*own, *held.values()], direction, generator, off) as moving:
            # Each was rounded before it came here, if only to a code.
            for tensor in (*own, *held.values()):
                moving.state[tensor] = rounding.ROUNDED
            moved = numerics.evaluate(program, own, held)
        for name, node in nodes.items():
            numbers, scale = wanted[name]
            if moved[name] not in moving:
                # A constant, which the delegate may compute when it runs.
                spreads[name].fill(scale)
            elif moving.is_rounded(moved[name]):
                with np.errstate(invalid="ignore", over="ignore"):
                    distance = np.nan_to_num(np.abs(real(node, moved[name])[0] - numbers), nan=np.inf)
                distance = np.where(np.isfinite(numbers), np.maximum(distance, TOUCHED), 0.0)
                spreads[name] = np.maximum(spreads[name], distance)
    tolerances = {}
    for name, (numbers, scale) in wanted.items():
        largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
        code = scale * ONE_CODE
        tolerances[name] = tolerance_of(spreads[name], spreads[name], code, max(bound * largest, code))
    return Evaluated(values, tolerances)


@dataclass(frozen=True)
class Program:
    """A lowered program as it is before it is emitted: emission rewrites it.

    Attributes
    ----------
    module
        The graph, which refers to the delegates.
    signature
        What its placeholders and outputs are.
    held
        See `harness.exporting.numerics.held_by`.
    """

    module: GraphModule
    signature: ExportGraphSignature
    held: Mapping[str, Any]

    @classmethod
    def of(cls, program: torch.export.ExportedProgram) -> Program:
        graph = Graph()
        graph.output(graph.graph_copy(program.graph, {}))
        specs = program.graph_signature
        signature = ExportGraphSignature(list(specs.input_specs), list(specs.output_specs))
        return cls(GraphModule(program.graph_module, graph), signature, numerics.held_by(program))


def first_departing(lowered: Lowered) -> Sample | None:
    """Return the first sample whose outputs are not what they should be; None if there is none."""
    return next((sample for sample in lowered.samples if _departs(lowered, sample, sample.outputs)), None)


def beginning(
    program: Program,
    lowered: Lowered,
    sample: Sample,
    inputs: Sequence[torch.Tensor],
    off: rounding.Approximations,
) -> Beginning:
    """Return where a sample whose outputs depart begins to depart.

    The runtime may end the process over a program that no partitioner would have made.

    Parameters
    ----------
    lowered
        What the program gave when it was run.
    inputs
        Of the sample.
    off
        Of the backend; see `harness.exporting.rounding.APPROXIMATIONS`.
    """
    walk = _Walk(program.module, lowered.bound, off)
    try:
        outputs = numerics.run_edge(walk, program.signature, program.held, inputs)
    except Exception as error:
        # Whatever a release raises where it is asked for more than an export, the verdict stays.
        message = (str(error).strip().splitlines() or [""])[0]
        return Beginning(sample.name, f"cannot be told: {type(error).__name__}: {message}")
    if walk.found is not None:
        return Beginning(sample.name, walk.found)
    return Beginning(sample.name, BEFORE if _departs(lowered, sample, outputs) else AFTER)


def _departs(lowered: Lowered, sample: Sample, outputs: Sequence[Tensor]) -> bool:
    """Whether some output has the dtype and the shape that it should have, and not the values."""
    return any(
        (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
        and not expected.dtype.startswith("complex")
        and exceeds(
            expected.array().astype(np.float64),
            actual.array().astype(np.float64),
            lowered.tolerance(sample, index),
        )
        for index, (expected, actual) in enumerate(zip(sample.expected, outputs, strict=False))
    )


class _Walk(numerics.EdgeInterpreter):
    """Runs a lowered program delegate by delegate, and looks into the first that does not give what its graph gives."""

    def __init__(self, module: GraphModule, bound: float, off: rounding.Approximations) -> None:
        super().__init__(module)
        self.bound = bound
        self.off = off
        self.delegate = ""
        self.found: Departure | str | None = None

    def run_node(self, n: Node) -> Any:
        if n.target is executorch_call_delegate:
            self.delegate = str(n.args[0])
        return super().run_node(n)

    def call_delegate(self, lowered: LoweredBackendModule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        if lowered.backend_id not in LOOKS:
            raise LookupError(f"nobody knows how to look into a delegate of {lowered.backend_id}")
        if self.found is not None:
            # Nothing that follows is looked at.
            return outputs_of(lowered, numerics.evaluate(lowered.original_module, inputs))
        look = LOOKS[lowered.backend_id]
        outputs = look.run(lowered, inputs)
        comparison = _Comparison(self.delegate, lowered, inputs, outputs, self.bound, self.off)
        if order := comparison.order(outputs):
            self.found = (
                f"in {self.delegate}, which gives its outputs in another order than its graph: "
                f"{', '.join(map(str, order))}"
            )
        elif comparison.output_departs():
            self.found = comparison.first(look.values(lowered, inputs, outputs, comparison.departs))
        return outputs


def outputs_of(lowered: LoweredBackendModule, values: Mapping[str, Any]) -> list[Any]:
    """Return the outputs of a delegate's graph, given the value of each of its nodes by name."""
    return [values[node.name] for node in lowered.original_module.graph.output_node().args[0]]


@dataclass(frozen=True)
class _Point:
    """A value of a delegate's graph, with the tensor that the delegate holds it in.

    Attributes
    ----------
    operator
        What the delegate computes it with; empty where that is not known.
    actual
        The delegate's value, in the shape and dtype of the graph's.
    departs
        Whether it is not what the graph gives.
    """

    node: Node
    operator: str
    actual: torch.Tensor
    departs: bool


class _Comparison:
    """A delegate that was run on some inputs, and its graph, run eagerly on the same.

    Attributes
    ----------
    eager
        What the graph gives.
    points
        Of each value that is seen inside the delegate, by its node.
    """

    def __init__(
        self,
        name: str,
        lowered: LoweredBackendModule,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        bound: float,
        off: rounding.Approximations,
    ) -> None:
        self.name = name
        self.program = lowered.original_module
        self.evaluate = functools.partial(evaluate, self.program, inputs, bound=bound, off=off)
        self.eager = self.evaluate(given={})
        self.nodes = {node.name: node for node in self.program.graph.nodes}
        self.outputs = list(self.program.graph.output_node().args[0])
        self.points: dict[Node, _Point] = {}
        for node, output in zip(self.outputs, outputs, strict=True):
            if point := self.point(node, [Held("", output)]):
                self.points[node] = point

    def output_departs(self) -> bool:
        return any(point.departs for point in self.points.values())

    def order(self, outputs: Sequence[torch.Tensor]) -> list[int]:
        """Return which output of the graph each of the delegate's is, where they are others in order; else nothing."""
        order: list[int] = []
        for output in outputs:
            found = (
                number
                for number, node in enumerate(self.outputs)
                if number not in order and output.shape == self.eager.values[node.name].shape
                if not self.departs(node.name, output)
            )
            order.append(next(found, -1))
        return order if -1 not in order and order != sorted(order) and self.output_departs() else []

    def departs(self, name: str, actual: torch.Tensor, eager: Evaluated | None = None) -> bool:
        """Whether `actual` is not what the graph gives for a node, or gives in another run."""
        eager = eager or self.eager
        node = self.nodes[name]
        return exceeds(real(node, eager.values[name])[0], real(node, actual)[0], eager.tolerances[name])

    def first(self, values: Values) -> Departure:
        """Return the first departure on the way to the outputs that its operator makes, or the first there is."""
        for node in self.nodes.values():
            for point in self.matches(node, values):
                known = self.points.get(point.node)
                # Of an output, the delegate's own value is known already; what computes it is new.
                if known is None or known.departs == point.departs:
                    self.points[point.node] = point
        # What each operator makes of the delegate's own values.
        own = self.evaluate(given={node.name: point.actual for node, point in self.points.items()})
        chain = self.chain()
        for point in chain:
            if self.departs(point.node.name, point.actual, own):
                return self.described(point, own, alone=True)
        return self.described(chain[0], self.eager, alone=False)

    def matches(self, node: Node, values: Values) -> list[_Point]:
        """Return what the tensors that were made of `node` show: its value, its codes, and what is fused with it.

        Of operators that left no trace of their own, only a match says that they were fused, but for those that always
        are, into the constants of the operator before them.
        """
        held = values.get(node.name, ())
        own = self.shown([node, *(user for user in node.users if is_quantize(user))], held)
        later = self.shown(self.unseen_after(node, values), held)
        fused = [point for point in later if not point.departs]
        if not all(point.departs for point in own):
            return own + fused
        folded = [point for point in later if computed_by(point.node).target in FOLDED]
        return fused or folded or own

    def shown(self, nodes: Iterable[Node], held: Sequence[Held]) -> list[_Point]:
        return [point for node in nodes if (point := self.point(node, held)) is not None]

    def point(self, node: Node, held: Sequence[Held]) -> _Point | None:
        """Return the first of some tensors that is a node's value, or the most like it; None if none can be.

        Of those that are not, one with the node's order of dimensions is more like it than one whose order is guessed.
        """
        expected = self.eager.values[node.name]
        found: list[tuple[tuple[bool, bool, float], _Point]] = []
        for each in held:
            for number, actual in enumerate(arrangements(each.value, expected)):
                departs = self.departs(node.name, actual)
                point = _Point(node, each.operator, actual, departs)
                if not departs:
                    return point
                distance = _distance(real(node, expected)[0], real(node, actual)[0])
                found.append(((number > 0, each.value.shape != actual.shape, distance), point))
        return min(found, key=lambda each: each[0])[1] if found else None

    def unseen_after(self, node: Node, values: Values) -> Iterator[Node]:
        """Yield the nodes that follow from `node` before the next that a tensor was made of."""
        waiting, seen = list(node.users), {node}
        while waiting:
            user = waiting.pop(0)
            if user not in seen and user.name not in values and user.op == "call_function":
                seen.add(user)
                yield user
                waiting += user.users

    def chain(self) -> list[_Point]:
        """Return the points that depart and lead to an output that does, through no point that does not, in order."""
        waiting = [node for node in self.outputs if node in self.points and self.points[node].departs]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in seen or (node in self.points and not self.points[node].departs):
                continue
            seen.add(node)
            waiting += node.all_input_nodes
        return [self.points[node] for node in self.nodes.values() if node in seen and node in self.points]

    def described(self, point: _Point, eager: Evaluated, *, alone: bool) -> Departure:
        wanted, _ = real(point.node, eager.values[point.node.name])
        before, unseen = self.before(point.node)
        source = computed_by(point.node)
        return Departure(
            delegate=self.name,
            operator=point.operator,
            node=f"{_called(source)} {source.name}",
            module=module_of(source, self.program.graph_signature),
            before=tuple(_called(computed_by(node)) for node in before),
            unseen=tuple(dict.fromkeys(_called(node) for node in unseen)),
            agrees=not any(node in self.points and self.points[node].departs for node in before),
            alone=alone,
            expected=Tensor.of(wanted.astype(np.float32)),
            actual=Tensor.of(real(point.node, point.actual)[0].astype(np.float32)),
            tolerance=Tensor.of(eager.tolerances[point.node.name]),
        )

    def before(self, node: Node) -> tuple[list[Node], list[Node]]:
        """Return the values that `node` is made from and that are seen, and the operators between that are not."""
        given = set(self.program.graph_signature.user_inputs)
        follows = {each for each in self.nodes.values() if each.name in given}
        for each in self.nodes.values():
            if not follows.isdisjoint(each.all_input_nodes):
                follows.add(each)
        waiting = [each for each in node.all_input_nodes if each in follows]
        found: dict[Node, None] = {}
        unseen: dict[Node, None] = {}
        while waiting:
            each = waiting.pop(0)
            if each in self.points or each.op == "placeholder":
                found[each] = None
            elif each not in unseen:
                unseen[each] = None
                waiting += [before for before in each.all_input_nodes if before in follows]
        own = computed_by(node)
        return list(found), [
            each for each in unseen if each is not own and not is_quantize(each) and not is_dequantize(each)
        ]


def real(node: Node, value: torch.Tensor) -> tuple[_Array, float]:
    """Return a value of `node` in real numbers, and what one code is worth: 0 where it is no code."""
    numbers = np.asarray(value.detach().to(torch.float64).numpy())
    if is_quantize(node):
        scale, zero_point = (number_of(argument) for argument in node.args[1:3])
        if scale:
            return (numbers - zero_point) * scale, scale
    if is_dequantize(node):
        return numbers, number_of(node.args[1])
    return numbers, 0.0


def number_of(argument: Any) -> float:
    """Return a quantization parameter that the graph holds as a number; 0 for one that it computes."""
    return float(argument) if isinstance(argument, int | float) else 0.0


def is_quantize(node: Node) -> bool:
    return numerics.operator_of(node.target) in numerics.QUANTIZE


def is_dequantize(node: Node) -> bool:
    return numerics.operator_of(node.target) in numerics.DEQUANTIZE


def computed_by(node: Node) -> Node:
    """Return the operator whose value `node` has, in codes or not, or as one of several."""
    while (
        is_quantize(node) or is_dequantize(node) or node.target is operator.getitem
    ) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _called(node: Node) -> str:
    """Return what a maintainer calls the operator of a node: ``aten.linear``; for an input, its name."""
    if node.op != "call_function":
        return f"input {node.name}"
    return str(numerics.operator_of(node.target)).removesuffix(".default")


def module_of(node: Node, signature: ExportGraphSignature) -> str:
    """Return the path of the innermost module that a node was traced from; empty where it is not known.

    A quantized program was traced from a graph, not from modules. Its parameters still have their paths.
    """
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]).removeprefix("L['self']").lstrip(".") if stack else ""
    held = {**signature.inputs_to_buffers, **signature.inputs_to_parameters}
    owners = [held[each.name].rpartition(".")[0] for each in node.all_input_nodes if each.name in held]
    return path or next(filter(None, owners), "")


def arrangements(value: torch.Tensor, expected: Any) -> Iterator[torch.Tensor]:
    """Yield `value` in the shape and dtype of `expected`, as it lies, then in each order of dimensions that gives it.

    Backends store channels last, and add or leave out dimensions of one element.
    """
    if not isinstance(expected, torch.Tensor) or value.numel() != expected.numel():
        return
    if value.dtype != expected.dtype and not {value.dtype, expected.dtype} <= INDICES:
        return
    value = value.detach().to(expected.dtype)
    yield value.reshape(expected.shape)
    stored = tuple(size for size in value.shape if size != 1)
    long = [axis for axis, size in enumerate(expected.shape) if size != 1]
    for axes in itertools.permutations(long):
        if tuple(expected.shape[axis] for axis in axes) == stored and list(axes) != long:
            back = sorted(range(len(axes)), key=axes.__getitem__)
            yield value.reshape(stored).permute(back).reshape(expected.shape)


def _distance(expected: _Array, actual: _Array) -> float:
    """Return the mean absolute difference of what is finite in both."""
    finite = np.isfinite(expected) & np.isfinite(actual)
    return float(np.abs(actual[finite] - expected[finite]).mean()) if finite.any() else 0.0
