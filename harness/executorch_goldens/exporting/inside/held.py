"""Values inside a delegate, by the nodes of the graph that it was lowered from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens.exporting.observing import Simulator


@dataclass(frozen=True)
class Held:
    """A tensor inside a delegate.

    Attributes
    ----------
    operator
        The operator that computes it, in the words of the payload's format; empty if unknown.
    value
        As the delegate has it: its dimensions may be in another order than the graph's, or cut and joined.
    """

    operator: str
    value: torch.Tensor


#: By name of a node: the tensors that its operator, however it was lowered, left in the delegate, in order.
Values: TypeAlias = Mapping[str, Sequence[Held]]

#: Runs a delegate and observes it: from its inputs to its outputs and inner values.
Opened: TypeAlias = Callable[[Sequence[torch.Tensor]], tuple[list[torch.Tensor], Values]]


@dataclass(frozen=True)
class Look:
    """Reads the values inside the delegates of a backend.

    Attributes
    ----------
    run
        From a delegate and its inputs to its outputs.
    values
        From a delegate, its inputs and its outputs, which depart, to the values inside.
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
