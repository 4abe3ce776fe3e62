"""Runs a quantized graph without its quantizations: what still differs from the float model is no quantization."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from executorch_goldens.artifact import Tensor
from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.dialect import following
from executorch_goldens.exporting.numerics.loss import (
    Partly,
    dequantizes,
    described,
    of_quantization,
    quantizes,
)
from executorch_goldens.exporting.numerics.programs import Steps

#: Noise of a value, as a part of its signal, that is no difference: a hundredth of its size. Rounding of float32 leaves
#: a millionth.
LEAST = 1e-4
#: Runs with other roundings of constants that are codes, and the times of their noise that these explain: four standard
#: deviations of a value.
DRAWS, EXPLAINED = 8, 16.0

#: Steps of a code that rounding moves a weight by at most.
HALF = 0.51

#: In place of the first operator that differs, where the float model has no graph, or none of floats differs.
UNKNOWN = "an operator that is not known"

_Values = dict[Node, torch.Tensor]


class ModelChange(NamedTuple):
    """A difference between a quantized graph without its quantizations and the float model.

    Attributes
    ----------
    where
        The first operator whose numbers differ.
    line
        How far the output differs, and this operator beside that of the float model, each with its settings.
    """

    where: str
    line: str


def change(
    plain: torch.nn.Module,
    converted: torch.nn.Module,
    call: CallSpec,
    steps: Steps,
    floats: Sequence[Tensor],
    index: int,
) -> ModelChange | None:
    """Return the change of a model that is no quantization; None if it has none, or that is not known.

    Parameters
    ----------
    plain, converted
        The graph of the float model and the quantized one. In place of constants that are codes of its weights, these
        are taken; others keep their rounding, and how far that moves each value is measured, by other roundings.
    call, steps, floats
        A sample, and the outputs of the float model on it.
    index
        Number of the output.
    """
    weights = [each.detach() for each in plain.parameters()]
    if not isinstance(converted, GraphModule) or not all(map(_is_seen, _nodes(converted))):
        return None
    if not any(map(of_quantization, _nodes(converted))):
        return None
    bare = _Bare(converted, call, weights)
    given, values = bare.on(steps)
    if bare.is_cut:
        return None
    drawn = (
        [bare.on(steps, torch.Generator().manual_seed(seed)) for seed in range(DRAWS)] if bare.codes else []
    )

    def differs(made: torch.Tensor, expected: torch.Tensor, others: Sequence[torch.Tensor]) -> bool:
        moved = sum(_noise(other, made) for other in others) / DRAWS
        return _noise(made, expected) > max(LEAST * _power(expected), EXPLAINED * moved)

    made, expected = _wide(given[index]), _wide(floats[index])
    if made.shape != expected.shape or not differs(made, expected, [_wide(each[index]) for each, _ in drawn]):
        return None
    noise = _noise(made, expected)
    left = f"{10 * math.log10(_power(expected) / noise):.1f} dB" if 0 < noise < math.inf else "nothing"
    without = f"without its quantizations output {index} has {left} against the float model"
    if not isinstance(plain, GraphModule):
        return ModelChange(UNKNOWN, without)
    _, own = _Bare(plain, call).on(steps)

    def alike(node: Node, own_node: Node) -> bool:
        value, of_model = values[node], own[own_node]
        others = [moved[node] for _, moved in drawn if node in moved]
        return value.shape == of_model.shape and not differs(value, of_model, others)

    pairs = {node: [each for each in own if alike(node, each)] for node in values}
    agreeing = {node for node, same in pairs.items() if same}
    # What only the graph has, as a convolution before the batch norm that is part of it, is followed by what agrees.
    others = (node for node in values if node not in agreeing and agreeing.isdisjoint(following([node])))
    if (first := next(others, None)) is None:
        return ModelChange(UNKNOWN, without)
    lacking = own.keys() - {each for same in pairs.values() for each in same}
    there = [node for node in own if node in lacking and own[node].shape == values[first].shape]
    line = f"{without}; {_described(first)}"
    if there:
        line += f", where the model has {_described(min(there, key=lambda node: _noise(values[first], own[node])))}"
    return ModelChange(described(_source(first)), line)


class _Bare(Partly):
    """Runs a graph without its quantizations.

    Attributes
    ----------
    codes
        Whether it has constants that are codes of other numbers than `weights`.
    is_cut
        Whether so many of these are the ends of their range that it may be too narrow: then nothing is known of them.
    """

    def __init__(self, module: GraphModule, call: CallSpec, weights: Sequence[torch.Tensor] = ()) -> None:
        super().__init__(_without_nested(module), call)
        self.weights = weights
        self.codes = self.is_cut = False
        self.source: torch.Generator | None = None
        self.values: _Values = {}
        copied = cast("GraphModule", self.module)
        self.original = dict(zip(copied.graph.nodes, module.graph.nodes, strict=True))
        self.moving: set[Node] = set()

    def on(self, steps: Steps, source: torch.Generator | None = None) -> tuple[tuple[Tensor, ...], _Values]:
        """Run it; return its outputs and the value of each operator of floats that depends on an input."""
        self.source, self.values = source, {}
        with torch.no_grad():
            return self.outputs(steps), self.values

    def run_node(self, n: Node) -> Any:
        value = self._value(n)
        if n.op == "placeholder" or any(each in self.moving for each in n.all_input_nodes):
            self.moving.add(n)
            is_own = n.op == "call_function" and not of_quantization(n)
            if is_own and isinstance(value, torch.Tensor) and value.is_floating_point():
                self.values[self.original[n]] = value.double()
        return value

    def _value(self, n: Node) -> Any:
        value = super().run_node(n)
        if not dequantizes(n):
            return value
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        codes, run = args[0], cast("Callable[..., Any]", n.target)
        if codes.is_floating_point():
            return value
        inside = (codes > codes.min()) & (codes < codes.max())
        step = (
            value - run(torch.where(codes > codes.min(), codes - 1, codes + 1), *args[1:], **kwargs)
        ).abs()
        for weight in self.weights:
            if weight.shape == value.shape and ((weight - value).abs() <= HALF * step)[inside].all():
                return weight.to(value.dtype)
        self.codes = True
        self.is_cut |= 2 * int(inside.sum()) < inside.numel()
        if self.source is None:
            return value
        return value + (torch.rand(value.shape, generator=self.source) - 0.5) * step


def _without_nested(module: GraphModule) -> GraphModule:
    """Return a copy of a graph whose branches and loops have no quantizations."""
    copied = copy.deepcopy(module)
    for inner in copied.modules():
        if isinstance(inner, GraphModule) and inner is not copied:
            for node in filter(of_quantization, inner.graph.nodes):
                if quantizes(node) or dequantizes(node):
                    node.target = _handing_on(cast("Callable[..., Any]", node.target))
            inner.recompile()
    return copied


def _handing_on(target: Callable[..., Any]) -> Callable[..., Any]:
    def handed_on(value: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return value if value.is_floating_point() else target(value, *args, **kwargs)

    return handed_on


def _nodes(module: GraphModule) -> Iterator[Node]:
    for inner in module.modules():
        if isinstance(inner, GraphModule):
            yield from inner.graph.nodes


def _is_seen(node: Node) -> bool:
    """Return whether an operator quantizes or takes no codes: what codes are to any other one is not known."""
    name = of_quantization(node)
    return not name or quantizes(node) or dequantizes(node) or name.startswith("choose_qparams")


def _source(node: Node) -> Node:
    """Return the operator that gives a value, alone or as one of several."""
    while node.target is operator.getitem:
        node = cast("Node", node.args[0])
    return node


def _described(node: Node) -> str:
    """Return an operator with the arguments that are no values of the graph."""
    node = _source(node)
    plain = [
        str(each)
        for each in (*node.args, *node.kwargs.values())
        if not any(isinstance(leaf, Node) for leaf in pytree.tree_leaves(each))
    ]
    return described(node) + (f" ({', '.join(plain)})" if plain else "")


def _wide(value: Tensor) -> torch.Tensor:
    return torch.from_numpy(value.wide().copy())


def _power(value: torch.Tensor) -> float:
    return float(value[value.isfinite()].abs().square().sum())


def _noise(made: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the power of a difference; infinity where one of two is no number."""
    same = (made == expected) | (made.isnan() & expected.isnan())
    power = float(torch.where(same, 0.0, (made - expected).abs().square()).sum())
    return math.inf if np.isnan(power) else power
