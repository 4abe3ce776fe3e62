"""Finds the quantizations that lose the signal of an output: each is done alone, and the output is compared with float.

A mask of minus infinity, for instance, takes the whole range of the codes of what it is added to. What is left of the
other values is nothing, and the codes that stand for the mask are exact: only the output shows it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter, Node

from harness.artifact import Tensor
from harness.exporting.numerics import Steps, flatten, given_by
from harness.judging.accuracy import Nearness

#: Namespaces of the operators that quantize.
NAMESPACES = ("quantized_decomposed", "torchao")
#: Quantizations that are named.
SHOWN = 3
#: Distinct values of what is quantized that are counted.
COUNTED = 1 << 16


@dataclass(frozen=True)
class Loss:
    """What one quantization costs.

    Attributes
    ----------
    node
        That quantizes.
    left
        Ratio of the output's signal to the noise where nothing else is quantized, in dB.
    values, codes
        Distinct finite values of what is quantized, and those of them that the codes tell apart.
    parameters
        Scale, zero point and the range that the codes have, in words.
    """

    node: Node
    left: float
    values: int
    codes: int
    parameters: str

    def line(self) -> str:
        left = "nothing" if self.left == -math.inf else f"{self.left:.1f} dB"
        return (
            f"quantizing {produced(self.node)}: {self.parameters}; of {self.values} distinct finite values "
            f"{self.codes} are left; alone it leaves {left}"
        )


def losses(
    converted: GraphModule, steps: Steps, floats: Sequence[Tensor], index: int, floor: float
) -> tuple[str, ...]:
    """Return the quantizations that leave an output below the floor, line by line, the worst first.

    Parameters
    ----------
    converted
        The quantized eager graph, with its weights quantized in it and not folded.
    steps, floats
        A sample, and the outputs of the float model on it.
    index
        Number of the output.
    """

    def left(active: Collection[str]) -> tuple[float, _Partly]:
        partly = _Partly(copy.deepcopy(converted), active)
        # It is called like a module.
        outputs = flatten(given_by(cast("torch.nn.Module", partly), copy.deepcopy(steps)))
        ratio = Nearness.of_pairs([(floats[index], outputs[index])]).sqnr
        return (math.inf if ratio is None else ratio), partly

    without, _ = left(())
    if without < floor:
        return (
            f"without the quantizations that are seen it has {without:.1f} dB: it is lost in a branch or a loop, or "
            "the quantizer changed the model itself",
        )
    found = []
    for node in converted.graph.nodes:
        if _is_quantize(node):
            ratio, partly = left((node.name,))
            found.append(Loss(node, ratio, *partly.seen))
    found.sort(key=lambda loss: loss.left)
    return tuple(_lines(found, floor))


def _lines(found: Sequence[Loss], floor: float) -> Iterator[str]:
    alone = [loss for loss in found if loss.left < floor]
    if not alone:
        yield f"none of the {len(found)} quantizations leaves so little alone; those that cost most:"
    for loss in (alone or found)[:SHOWN]:
        yield loss.line()
    if len(alone) > SHOWN:
        yield f"and {len(alone) - SHOWN} more that leave less than {floor:g} dB alone"


class _Partly(Interpreter):
    """Runs a quantized eager graph with only some of its quantizations; the others hand their values on.

    Attributes
    ----------
    seen
        Of the last active one: distinct values, codes that they become, and its parameters.
    """

    def __init__(self, module: GraphModule, active: Collection[str]) -> None:
        super().__init__(module)
        self.active = active
        self.seen: tuple[int, int, str] = (0, 0, "")

    def __call__(self, *inputs: torch.Tensor) -> Any:
        return self.run(*inputs)

    def run_node(self, n: Node) -> Any:
        if _is_quantize(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            if n.name not in self.active:
                return args[0]
            codes = self.call_function(cast("Callable[..., Any]", n.target), args, kwargs)
            self.seen = (_distinct(args[0]), _distinct(codes), _parameters(n, args))
            return codes
        if _is_dequantize(n):
            args, _ = self.fetch_args_kwargs_from_env(n)
            if args[0].is_floating_point():
                return args[0]
        return super().run_node(n)


def _is_quantize(node: Node) -> bool:
    return _named(node).startswith("quantize_")


def _is_dequantize(node: Node) -> bool:
    return _named(node).startswith("dequantize_")


def _named(node: Node) -> str:
    """Return the name of the operator of a node that quantizes, or dequantizes; empty for others."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace not in NAMESPACES:
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
    per_channel = "per_channel" in _named(node)
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


def produced(node: Node) -> str:
    """Return what a node quantizes: the operator that makes it with its node and its module, or the input or weight."""
    source = node.args[0]
    assert isinstance(source, Node)
    if source.op == "placeholder":
        return f"input {source.name}"
    if source.op == "get_attr":
        return f"parameter {source.target}"
    operator = str(source.target)
    stack = list((source.meta.get("nn_module_stack") or {}).values())
    module = str(stack[-1][0]).removeprefix("L['self']").lstrip(".") if stack else ""
    return f"{operator} {source.name}" + (f" of {module}" if module else "")
