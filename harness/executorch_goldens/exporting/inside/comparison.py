"""A delegate that was run, compared with its graph, run eagerly on the same inputs, value by value."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Node

from executorch_goldens.artifact import Departure, Tensor
from executorch_goldens.exporting.dialect import following, operator_of, reached, traced_from
from executorch_goldens.exporting.inside.evaluation import (
    Array,
    DelegateTensor,
    Evaluated,
    Values,
    evaluate,
    exceeds,
    following_inputs,
    is_dequantize,
    is_quantize,
    number_of,
    real,
)
from executorch_goldens.exporting.numerics.arithmetic import Approximations

#: Dtypes of indices: a delegate may hold those of the graph in fewer bits.
INDICES = frozenset({torch.int32, torch.int64})

#: Operators of the edge dialect that both backends fold into the constants of the convolution before them.
FOLDED = frozenset({exir_ops.edge.aten._native_batch_norm_legit_no_training.default})


@dataclass(frozen=True)
class _Point:
    """A value of a delegate's graph, with the tensor that the delegate holds it in.

    Attributes
    ----------
    operator
        The delegate's operator for it; empty if unknown.
    actual
        The delegate's value, in the shape and dtype of the graph's.
    departs
        Whether it is not what the graph gives.
    guessed
        Whether nothing but that says that the tensor is of this node: the node left no trace of its own.
    """

    node: Node
    operator: str
    actual: torch.Tensor
    departs: bool
    guessed: bool = False


class DelegateComparison:
    """A delegate that was run on some inputs, and its graph, run eagerly on the same.

    Attributes
    ----------
    eager
        The graph's value.
    points
        Points of each value that is seen inside the delegate, by its node.
    """

    def __init__(
        self,
        name: str,
        lowered: LoweredBackendModule,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        bound: float,
        off: Approximations,
    ) -> None:
        self.name = name
        self.program = lowered.original_module
        self.evaluate = functools.partial(evaluate, self.program, inputs, bound=bound, off=off)
        self.eager = self.evaluate(given={})
        self.nodes = {node.name: node for node in self.program.graph.nodes}
        self.outputs = list(self.program.graph.output_node().args[0])
        self.points: dict[Node, _Point] = {}
        for node, output in zip(self.outputs, outputs, strict=True):
            if point := self.point(node, [DelegateTensor("", output)]):
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
        """Return whether `actual` differs from the graph's value for a node, or from its value in another run."""
        eager = eager or self.eager
        node = self.nodes[name]
        return exceeds(real(node, eager.values[name])[0], real(node, actual)[0], eager.tolerances[name])

    def first(self, values: Values) -> Departure | None:
        """Return the first departure on the way to the outputs that its operator makes, or the first there is.

        Where no output departs, that is any that its operator makes; None if there is none.
        """
        own = self.own(values)
        chain = self.chain()
        found = self.by_itself(chain or self.seen(), own)
        if found is not None or not chain:
            return found
        return self.described(chain[0], self.eager, alone=False)

    def any_by_itself(self, values: Values) -> Departure | None:
        """Return the first departure that its operator makes of the delegate's own values; None if there is none.

        One inside counts where what follows from it differs as well. A tensor may have been made only to be seen, and
        a pass that moves a reshape past an addition leaves the reshape's name on the sum. It does not count where all
        there is to it is that the operator takes values that are not rounded to codes yet, which is more exact.
        """
        own = self.own(values)
        # Accumulated rounding may make any two values alike: a wrong guess is dropped.
        while wrong := [
            point
            for point in self.seen()
            if point.guessed
            and point.node not in self.outputs
            and self.departs(point.node.name, point.actual, own)
        ]:
            for point in wrong:
                del self.points[point.node]
            own = self.seen_by_operators()
        only_seen: set[Node] = set()
        for point in self.seen():
            found = self.by_itself([point], own)
            if found is None or self.comes_of(point, uncoded(point.node, own, cut_off=True)):
                continue
            if point.node in self.outputs or self.is_carried_on(point, only_seen):
                return found
            # Eager would make of it something else than what follows, which is right.
            only_seen.add(point.node)
            own = self.seen_by_operators(only_seen)
        return None

    def is_carried_on(self, point: _Point, only_seen: Collection[Node]) -> bool:
        """Return whether a value downstream departs even if eager's value is used here, quantized or not.

        Eager's is in the place of values that are `only_seen` as well.
        """
        source = computed_by(point.node)
        others = [each for each in self.seen() if computed_by(each.node) is not source]
        without = self.evaluate(
            given={each.node.name: each.actual for each in others if each.node not in only_seen}
        )
        after = following([source])
        return any(
            self.departs(each.node.name, each.actual, without) for each in others if each.node in after
        )

    def own(self, values: Values) -> Evaluated:
        """Note the values inside; return the eager result of each operator on the delegate's own values."""
        for node in self.nodes.values():
            for point in self.matches(node, values):
                known = self.points.get(point.node)
                # Of an output, the delegate's own value is known already; what computes it is new.
                if known is None or known.departs == point.departs:
                    self.points[point.node] = point
        return self.seen_by_operators()

    def seen_by_operators(self, but: Collection[Node] = ()) -> Evaluated:
        """Return the eager result of each operator on the delegate's own values, the seen ones `but` some."""
        return self.evaluate(
            given={node.name: point.actual for node, point in self.points.items() if node not in but}
        )

    def by_itself(self, points: Iterable[_Point], own: Evaluated) -> Departure | None:
        """Return the first of some points whose operator makes something else of the delegate's own values."""
        for point in points:
            if self.departs(point.node.name, point.actual, own):
                given = uncoded(point.node, own)
                found = self.described(point, own, alone=True)
                return msgspec.structs.replace(found, uncut=self.comes_of(point, given))
        return None

    def comes_of(self, point: _Point, given: Mapping[str, torch.Tensor]) -> bool:
        """Return whether a value is the eager result of its operator, given other inputs than the delegate's own."""
        own = {node.name: each.actual for node, each in self.points.items()}
        return bool(given) and not self.departs(
            point.node.name, point.actual, self.evaluate(given={**own, **given})
        )

    def matches(self, node: Node, values: Values) -> list[_Point]:
        """Return the tensors made of `node`: its value, its codes, and values fused with it.

        Of operators that left no trace of their own, only a match says that they were fused, but for those that always
        are, into the constants of the operator before them.
        """
        held = values.get(node.name, ())
        own = self.shown([node, *(user for user in node.users if is_quantize(user))], held)
        later = self.shown(self.unseen_after(node, values), held)
        fused = [
            dataclasses.replace(point, guessed=computed_by(point.node).target not in FOLDED)
            for point in later
            if not point.departs
        ]
        if not all(point.departs for point in own):
            return own + fused
        folded = [point for point in later if computed_by(point.node).target in FOLDED]
        return fused or folded or own

    def shown(self, nodes: Iterable[Node], held: Sequence[DelegateTensor]) -> list[_Point]:
        return [point for node in nodes if (point := self.point(node, held)) is not None]

    def point(self, node: Node, held: Sequence[DelegateTensor]) -> _Point | None:
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

        def unseen(each: Node) -> list[Node]:
            return [user for user in each.users if user.name not in values and user.op == "call_function"]

        return reached(unseen(node), unseen)

    def chain(self) -> list[_Point]:
        """Return the points that depart and lead to an output that does, through no point that does not, in order."""

        def may_depart(nodes: Iterable[Node]) -> list[Node]:
            return [node for node in nodes if node not in self.points or self.points[node].departs]

        begins = [node for node in may_depart(self.outputs) if node in self.points]
        lead = {*reached(begins, lambda node: may_depart(node.all_input_nodes))}
        return [point for point in self.seen() if point.node in lead]

    def seen(self) -> list[_Point]:
        """Return all points, in order."""
        return [self.points[node] for node in self.nodes.values() if node in self.points]

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
            expected=Tensor.from_array(wanted.astype(np.float32)),
            actual=Tensor.from_array(real(point.node, point.actual)[0].astype(np.float32)),
            tolerance=Tensor.from_array(eager.tolerances[point.node.name]),
        )

    def before(self, node: Node) -> tuple[list[Node], list[Node]]:
        """Return the values that `node` is made from and that are seen, and the operators between that are not."""
        follows = following_inputs(self.program)
        own = computed_by(node)

        def is_seen(each: Node) -> bool:
            return each in self.points or each.op == "placeholder"

        def inputs(each: Node) -> list[Node]:
            return [before for before in each.all_input_nodes if before in follows]

        found = [*reached(inputs(node), lambda each: () if is_seen(each) else inputs(each))]
        between = (each for each in found if not is_seen(each))
        return list(filter(is_seen, found)), [
            each for each in between if each is not own and not _converts(each)
        ]


def uncoded(node: Node, own: Evaluated, *, cut_off: bool = False) -> dict[str, torch.Tensor]:
    """Return the inputs of an operator if they were not quantized, by the nodes that dequantize them.

    TOSA's passes leave out a RESCALE to int8 with the one back to int32: that neither rounds to codes nor cuts off.

    Parameters
    ----------
    cut_off
        Whether they are cut off all the same where the codes end.
    """
    given = {}
    for each in computed_by(node).all_input_nodes:
        quantize = each.args[0] if is_dequantize(each) else None
        if isinstance(quantize, Node) and is_quantize(quantize) and (scale := number_of(quantize.args[1])):
            zero_point, low, high = (number_of(argument) for argument in quantize.args[2:5])
            value = own.values[quantize.all_input_nodes[0].name]
            ends = (low - zero_point) * scale, (high - zero_point) * scale
            given[each.name] = value.clamp(*ends) if cut_off else value
    return given


def _converts(node: Node) -> bool:
    """Return whether `node` quantizes or dequantizes the value of another node."""
    return is_quantize(node) or is_dequantize(node)


def computed_by(node: Node) -> Node:
    """Return the operator whose value `node` has, in codes or not, or as one of several."""
    while (_converts(node) or node.target is operator.getitem) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _called(node: Node) -> str:
    """Return the usual name of a node's operator: ``aten.linear``; for an input, its name."""
    if node.op != "call_function":
        return f"input {node.name}"
    return str(operator_of(node.target)).removesuffix(".default")


def module_of(node: Node, signature: ExportGraphSignature) -> str:
    """Return the path of the innermost module that a node was traced from; empty where it is not known.

    A quantized program was traced from a graph, not from modules. Its parameters still have their paths.
    """
    held = {**signature.inputs_to_buffers, **signature.inputs_to_parameters}
    owners = [held[each.name].rpartition(".")[0] for each in node.all_input_nodes if each.name in held]
    return traced_from(node) or next(filter(None, owners), "")


def arrangements(value: torch.Tensor, expected: Any) -> Iterator[torch.Tensor]:
    """Yield `value` in the shape and dtype of `expected`: as is, then in each order of dimensions that fits.

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


def _distance(expected: Array, actual: Array) -> float:
    """Return the mean absolute difference over elements that are finite in both."""
    finite = np.isfinite(expected) & np.isfinite(actual)
    return float(np.abs(actual[finite] - expected[finite]).mean()) if finite.any() else 0.0
