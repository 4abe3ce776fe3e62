"""Finds the quantizations that lose the signal of an output: each is done alone, and the output is compared with float.

A mask of minus infinity, for instance, takes the whole range of the codes of what it is added to. What is left of the
other values is nothing, and the codes of the mask are exact: only the output shows it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Interpreter, Node

from executorch_goldens.artifact import Tensor
from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.dialect import reached, traced_from
from executorch_goldens.exporting.numerics.arithmetic import kind_of
from executorch_goldens.exporting.numerics.programs import Steps, flatten, given_by, keeping
from executorch_goldens.goldens.accuracy import STEP, Nearness

#: Namespaces of the operators that quantize.
NAMESPACES = ("quantized_decomposed", "torchao")
#: Operators that compare. A value that was moved by less than a code may be the other side of what it is compared with.
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
#: Quantizations that are named.
SHOWN = 3
#: Distinct values of what is quantized that are counted.
COUNTED = 1 << 16


@dataclass(frozen=True)
class Loss:
    """Precision lost by one quantization, or by several whose values are compared together.

    Attributes
    ----------
    nodes
        Nodes that quantize.
    left
        Ratio of the output's signal to the noise where nothing else is quantized, in dB.
    values, codes
        Distinct finite values of what the first of them quantizes, and those of these that the codes tell apart.
    parameters
        Its scale, zero point and the range that the codes have, in words.
    """

    nodes: tuple[Node, ...]
    left: float
    values: int
    codes: int
    parameters: str

    def line(self) -> str:
        left = "nothing" if self.left == -math.inf else f"{self.left:.1f} dB"
        compared = " and what it is compared with" if len(self.nodes) > 1 else ""
        return (
            f"quantizing {produced(self.nodes[0])}{compared}: {self.parameters}; of {self.values} distinct finite "
            f"values {self.codes} are left; alone it leaves {left}"
        )


def losses(
    converted: GraphModule, call: CallSpec, steps: Steps, floats: Sequence[Tensor], index: int, floor: float
) -> tuple[tuple[str, ...], bool, str]:
    """Return the quantizations that leave an output below the floor, line by line, the worst first.

    Beside it whether these lines name any, and the kind of the worst.

    The model runs once for each of them.

    Parameters
    ----------
    converted
        The quantized eager graph, with its weights quantized in it and not folded.
    call
        Its arguments.
    steps, floats
        A sample, and the outputs of the float model on it.
    index
        Number of the output.
    """
    partly = Partly(copy.deepcopy(converted), call)

    def left(active: Collection[Node]) -> float:
        partly.active = {node.name for node in active}
        ratio = Nearness.of_pairs([(floats[index], partly.outputs(steps)[index])]).sqnr
        return math.inf if ratio is None else ratio

    without = left(())
    if without < floor:
        where = "it is lost in a branch or a loop, or training or the quantizer changed the model itself"
        return (f"without the quantizations that are seen it has {without:.1f} dB: {where}",), False, ""
    found = [
        Loss(nodes, left(nodes), *partly.seen.get(nodes[0].name, (0, 0, "")))
        for nodes in together(converted.graph)
    ]
    found.sort(key=lambda loss: loss.left)
    worst = {kind(loss.nodes[0]) for loss in found if loss.left <= found[0].left + STEP}
    return tuple(_lines(found, floor)), True, " and ".join(sorted(worst))


def together(graph: Graph) -> list[tuple[Node, ...]]:
    """Return the quantizations of a graph, those together whose values are compared with each other.

    One alone would make 2.997 of 3, and no 3 would be equal to it. With the other one quantized alike, they are equal.
    """
    of: dict[Node, tuple[Node, ...]] = {node: (node,) for node in graph.nodes if quantizes(node)}
    for node in filter(_compares, graph.nodes):
        joined = {each for before in _handed_on(node) for each in of[before]}
        ordered = tuple(each for each in of if each in joined)
        of.update(dict.fromkeys(ordered, ordered))
    return list(dict.fromkeys(of.values()))


def _compares(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target.overloadpacket.__name__ in COMPARISONS


def _handed_on(node: Node) -> Iterator[Node]:
    """Yield the quantizations that `node` has its inputs from, through operators that change no number."""

    def before(each: Node) -> list[Node]:
        hands_on = isinstance(each.target, OpOverload) and (
            quantizes(each) or kind_of(each.target) == "exact"
        )
        return each.all_input_nodes if hands_on else []

    return filter(quantizes, reached(node.all_input_nodes, before))


def _lines(found: Sequence[Loss], floor: float) -> Iterator[str]:
    alone = [loss for loss in found if loss.left < floor]
    if not alone:
        yield f"none of the {len(found)} quantizations leaves so little alone; those that cost most:"
    for loss in (alone or found)[:SHOWN]:
        yield loss.line()
    if len(alone) > SHOWN:
        yield f"and {len(alone) - SHOWN} more that leave less than {floor:g} dB alone"


class Partly(Interpreter):
    """Runs a quantized eager graph with only some of its quantizations; the others hand their values on.

    Attributes
    ----------
    active
        Names of those that it runs with.
    seen
        Distinct values of each of these, codes that they become, and its parameters.
    """

    def __init__(self, module: GraphModule, call: CallSpec) -> None:
        super().__init__(module)
        self.call = call
        self.active: Collection[str] = ()
        self.seen: dict[str, tuple[int, int, str]] = {}

    def __call__(self, *inputs: torch.Tensor) -> Any:
        return self.run(*self.call.with_tensors(inputs))

    def outputs(self, steps: Steps) -> tuple[Tensor, ...]:
        """Run it step by step; return the last outputs, and leave its parameters and buffers as they were."""
        with keeping([*self.module.parameters(), *self.module.buffers()]):
            # It is called like a module.
            return flatten(given_by(cast("torch.nn.Module", self), copy.deepcopy(steps)))

    def run_node(self, n: Node) -> Any:
        if quantizes(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            if n.name not in self.active:
                return args[0]
            codes = self.call_function(cast("Callable[..., Any]", n.target), args, kwargs)
            self.seen[n.name] = (_distinct(args[0]), _distinct(codes), _parameters(n, args))
            return codes
        if dequantizes(n):
            args, _ = self.fetch_args_kwargs_from_env(n)
            if args[0].is_floating_point():
                return args[0]
        return super().run_node(n)


def quantizes(node: Node) -> bool:
    """Return whether a node makes codes of numbers."""
    return of_quantization(node).startswith("quantize_")


def dequantizes(node: Node) -> bool:
    """Return whether a node makes numbers of codes."""
    return of_quantization(node).startswith("dequantize_")


def of_quantization(node: Node) -> str:
    """Return the name of an operator of `NAMESPACES`; empty for others."""
    if not isinstance(node.target, OpOverload) or node.target.namespace not in NAMESPACES:
        return ""
    return node.target._opname


def _distinct(values: torch.Tensor) -> int:
    numbers = values.detach().flatten()[:COUNTED].double()
    return len(set(numbers[torch.isfinite(numbers)].tolist()))


def _parameters(node: Node, args: Sequence[Any]) -> str:
    """Return scale, zero point and range of a quantization in words; those of channels from the least to the most."""
    scale, zero, *_ = args[1:]
    scales = torch.as_tensor(scale).detach().double().flatten()
    zeros = torch.as_tensor(zero).detach().double().flatten()
    per_channel = "per_channel" in of_quantization(node)
    low, high = args[4:6] if per_channel else args[3:5]
    least, most = ((scales * (code - zeros)) for code in (low, high))
    axis = f" along axis {args[3]}" if per_channel else ""
    ends = (
        f"{float(least.min()):.4g} to {float(most.max()):.4g}" if scales.isfinite().all() else "without ends"
    )
    return f"scale {_span(scales)}{axis}, zero point {_span(zeros)}, range {ends}"


def _span(numbers: torch.Tensor) -> str:
    least, most = float(numbers.min()), float(numbers.max())
    return f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"


def kind(node: Node) -> str:
    """Return what is quantized, to which codes: without the names, sizes and scales of one model."""
    source = node.args[0]
    assert isinstance(source, Node)
    what = "an input" if source.op == "placeholder" else str(source.target)
    if source.op == "get_attr":
        takers = {str(user.target) for dequantize in node.users for user in dequantize.users}
        what = f"a parameter of {', '.join(sorted(takers))}"
    low, high = [each for each in node.args if isinstance(each, int)][-2:]
    return f"{what} in codes {low} to {high}"


def produced(node: Node) -> str:
    """Return the source of a quantized value: its operator with node and module, or the input or weight."""
    source = node.args[0]
    assert isinstance(source, Node)
    if source.op == "placeholder":
        return f"input {source.name}"
    if source.op == "get_attr":
        return f"parameter {source.target}"
    return described(source)


def described(node: Node) -> str:
    """Return an operator with its node and module."""
    module = traced_from(node)
    return f"{node.target} {node.name}" + (f" of {module}" if module else "")
