"""Values inside a delegate, and eager evaluation of its graph: each value, and how far rounding alone may move it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.fx import Node

from executorch_goldens.decode.difference import distances
from executorch_goldens.exporting.dialect import following, operator_of
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics import rounding
from executorch_goldens.exporting.numerics.arithmetic import Approximations
from executorch_goldens.exporting.observing import Simulator
from executorch_goldens.numerics.tolerances import ONE_CODE, allowed

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class DelegateTensor:
    """A tensor inside a delegate.

    Attributes
    ----------
    operator
        The operator that computes it, in the words of the payload's format; empty if unknown.
    value
        The tensor in the delegate: its dimensions may be in another order than the graph's, or cut and joined.
    """

    operator: str
    value: torch.Tensor


#: By name of a node: the tensors that its operator, however it was lowered, left in the delegate, in order.
Values: TypeAlias = Mapping[str, Sequence[DelegateTensor]]

#: Runs a delegate and observes it: from its inputs to its outputs and inner values.
Opened: TypeAlias = Callable[[Sequence[torch.Tensor]], tuple[list[torch.Tensor], Values]]


@dataclass(frozen=True)
class Look:
    """Reads the values inside the delegates of a backend.

    Attributes
    ----------
    run
        Function from a delegate and its inputs to its outputs.
    values
        Function from a delegate, its inputs and its outputs, which depart, to the values inside.
    opened
        Makes a delegate ready to be run with the values inside seen.
    """

    run: Simulator
    values: Callable[[LoweredBackendModule, Sequence[torch.Tensor], Sequence[torch.Tensor]], Values]
    opened: Callable[[LoweredBackendModule], Opened]

    @classmethod
    def of_outputs(cls, run: Simulator) -> Look:
        """Return an observer for a delegate that `run` runs: it sees its outputs alone."""
        return cls(run, lambda *_: {}, lambda lowered: lambda inputs: (run(lowered, inputs), {}))


def exceeds(expected: np.ndarray[Any, Any], actual: np.ndarray[Any, Any], tolerance: Array) -> bool:
    """Return whether a number is farther from the expected one than allowed; a non-finite one allows anything."""
    judged = np.isfinite(expected)
    allowed = np.broadcast_to(tolerance, expected.shape)[judged]
    difference = distances(actual[judged], expected[judged])
    return bool((np.nan_to_num(difference, nan=np.inf, posinf=np.inf) > allowed).any())


@dataclass(frozen=True)
class Evaluated:
    """A delegate's graph, run eagerly.

    Attributes
    ----------
    values
        The value of each node, by its name.
    tolerances
        The tolerance of each element of a delegate's value, in real numbers.
    """

    values: Mapping[str, Any]
    tolerances: Mapping[str, Array]


def evaluate(
    program: torch.export.ExportedProgram,
    inputs: Sequence[torch.Tensor],
    given: Mapping[str, torch.Tensor],
    bound: float,
    off: Approximations,
) -> Evaluated:
    """Run a delegate's graph, and measure how far rounding alone moves each value; see `exporting.numerics.rounding`.

    Parameters
    ----------
    given
        Values, by name of a node, that the nodes after it take in place of its own. No rounding before it counts then.
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
            spreads[name] = _widened(spreads[name], node, moved[name], moving, wanted[name])
    tolerances = {
        name: allowed([numbers], [spreads[name]], scale * ONE_CODE, bound)[0].reach
        for name, (numbers, scale) in wanted.items()
    }
    return Evaluated(values, tolerances)


def _widened(
    spread: Array, node: Node, moved: torch.Tensor, moving: rounding.Rounding, wanted: tuple[Array, float]
) -> Array:
    """Return the spread of the value of `node`, extended by one more run's distance from `wanted`."""
    numbers, scale = wanted
    if moved not in moving:
        # A constant, which the delegate may compute when it runs.
        return np.full_like(spread, scale)
    if moving.is_rounded(moved):
        return np.maximum(spread, rounding.distance(real(node, moved)[0], numbers))
    return spread


def outputs_of(lowered: LoweredBackendModule, values: Mapping[str, Any]) -> list[Any]:
    """Return the outputs of a delegate's graph, given the value of each of its nodes by name."""
    return [values[node.name] for node in lowered.original_module.graph.output_node().args[0]]


def real(node: Node, value: torch.Tensor) -> tuple[Array, float]:
    """Return a value of `node` in real numbers, and the size of one code: 0 where it is no code."""
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
    return operator_of(node.target) in numerics.QUANTIZE


def is_dequantize(node: Node) -> bool:
    return operator_of(node.target) in numerics.DEQUANTIZE


def following_inputs(program: torch.export.ExportedProgram) -> set[Node]:
    """Return the inputs of a program, and the nodes that are computed from them."""
    given = set(program.graph_signature.user_inputs)
    inputs = [node for node in program.graph.nodes if node.name in given]
    return {*inputs, *following(inputs)}
