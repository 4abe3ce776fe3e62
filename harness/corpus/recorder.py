"""Has a process that exports write down what the program and its TOSA delegates are run on: no artifact has that.

An exporting process imports this because `harness.sweeping.settings.Settings.models` names it, after the zoos. It
brings the patch `harness.corpus.record.PATCH`, which `harness.sweeping.sweep.Sweep` is asked to install further. It
changes nothing that is exported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from harness import patches, releases
from harness.artifact import Cell
from harness.corpus.format import Value
from harness.corpus.record import FOLDER, PATCH, Call, Record


def _install(release: str) -> None:
    from harness.exporting import numerics
    from harness.exporting.export import Export

    run, in_reference_model, run_model = Export.run, numerics.in_reference_model, numerics.run_model
    #: For each sample, in order, the calls of delegates.
    calls: list[list[Call]] = []

    @wraps(in_reference_model)
    def one_sample(program: Any, steps: Any) -> Any:
        calls.append([])
        return in_reference_model(program, steps)

    @wraps(run_model)
    def one_call(payload: bytes, arrays: Sequence[Any]) -> Any:
        outputs = run_model(payload, arrays)
        if calls:
            given, gave = (tuple(map(Value.of_array, each)) for each in (arrays, outputs))
            calls[-1].append(Call(payload, given, gave))
        return outputs

    @wraps(run)
    def recorded(self: Export) -> Any:
        calls.clear()
        lowered = run(self)
        samples = {
            name: tuple(tuple(map(of_tensor, step)) for step in steps) for name, steps in self.samples.items()
        }
        of_delegates = dict(zip(samples, map(tuple, calls), strict=False))
        cell = Cell(self.target.name, self.case.name)
        Record(samples, of_delegates).write(Path(os.environ[FOLDER]), cell)
        return lowered

    Export.run = recorded  # type: ignore[method-assign]
    numerics.in_reference_model, numerics.run_model = one_sample, one_call


def of_tensor(tensor: Any) -> Value:
    """Return an input, with its strides where its elements lie side by side in another order than C's."""
    import torch

    tensor = tensor.detach()
    plain = tensor.contiguous()
    strides = tensor.stride()
    in_some_order = tensor.permute(tensor.dim_order()).is_contiguous()
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return Value(
        str(plain.dtype).partition(".")[2],
        tuple(plain.shape),
        data,
        strides if in_some_order and strides != plain.stride() else None,
    )


patches.register(
    patches.Patch(
        name=PATCH,
        report=None,
        summary="nothing is different; what programs are run on is written down",
        known={version: {} for version in releases.load().releases},
        install=_install,
    )
)
