"""Compares every operator inside the delegates with eager, given its actual inputs.

Whatever the outputs of a program may be off by, each of its operators may be off by its own rounding only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens.artifact import Beginning, Departure, Inside, Lowered
from executorch_goldens.exporting.inside import beginning
from executorch_goldens.exporting.inside.held import Look, Opened, Values
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.arithmetic import Approximations

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
    program: beginning.Program,
    lowered: Lowered,
    samples: Mapping[str, numerics.Steps],
    off: Approximations,
) -> tuple[Beginning | None, Inside]:
    """Return the first operator of a program beyond its own rounding, and the checked ones.

    Parameters
    ----------
    lowered
        The outputs of the program.
    samples
        Inputs by name of the sample; of several steps only the last is looked at.
    off
        Of the backend; see `executorch_goldens.exporting.numerics.arithmetic.APPROXIMATIONS`.
    """
    walk = _OverAll(program, lowered.bound, off)
    expected = {sample.name: sample.outputs for sample in lowered.samples}
    for name, steps in samples.items():
        walk.values = 0
        try:
            outputs = walk.run_steps(steps)
        except Exception as error:
            # Whatever a release raises where it is asked for more than an export, the outputs are judged.
            walk.unseen[walk.delegate or "the program"] = beginning.described(error)
            break
        if walk.found is not None:
            return Beginning(name, walk.found), Inside(
                tuple(samples), walk.values, tuple(walk.unseen.items())
            )
        if outputs != tuple(expected[name]):
            walk.unseen["outside of the delegates"] = (
                "not the same to the last bit as eager's operators there"
            )
    return None, Inside(tuple(samples), walk.values, tuple(walk.unseen.items()))


class _OverAll(beginning.Walk):
    """Runs a lowered program and inspects its delegates.

    Attributes
    ----------
    found
        The first departure that an operator makes by itself.
    values
        How many values were compared.
    unseen
        See `executorch_goldens.artifact.Inside`.
    """

    def __init__(self, program: beginning.Program, bound: float, off: Approximations) -> None:
        super().__init__(program, bound, off)
        self.values = 0
        self.found: Departure | None = None
        self.unseen: dict[str, str] = {}
        self._opened: dict[str, Opened] = {}

    def call_delegate(self, lowered: LoweredBackendModule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        outputs, values = self._run(self.program.look(lowered), lowered, inputs)
        comparison = self.compared(lowered, inputs, outputs)
        if self.found is None:
            self.found = comparison.any_by_itself(values)
        self.values += len(comparison.points)
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
                self.unseen[self.delegate] = beginning.described(error)
        return look.run(lowered, inputs), {}
