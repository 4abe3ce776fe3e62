"""Makes the exporting process write its program with all its inputs.

What is written before a program is run stays when the run ends the process, or is refused: such programs have no place
in an artifact.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from executorch_goldens import artifact
from executorch_goldens.artifact import Cell, Lowered, Tensor
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.observing import Observer
from executorch_goldens.exporting.program import ExportProgress, Request
from executorch_goldens.zoo.targets import RUNTIME
from executorch_goldens_plugins.field.format import (
    EXECUTORCH,
    REFERENCE_MODEL,
    FrozenProgram,
    FrozenSample,
    FrozenTensor,
)
from executorch_goldens_plugins.field.record import of_call
from executorch_goldens_plugins.field.recorder import of_sizes, of_tensor
from lab.fielded import RECORDS, corpus
from lab.fielded.corpus import WHOLE, Shipped


class Recorder(Observer):
    """Writes the runs of one export, before each run and at the end.

    Attributes
    ----------
    reached
        How far the export has come.
    payloads
        Inputs of each payload; one that leaves sizes open has those of its runs.
    """

    reached: ExportProgress

    def __init__(self) -> None:
        self.release = compat.installed_release()
        self.pte = b""
        self.outputs: dict[str, tuple[Tensor, ...]] = {}
        self.payloads: dict[bytes, list[FrozenSample]] = {}
        self.sample, self.payload = "", b""
        self.numbers = 0

    def around(self, request: Request, stages: Iterator[ExportProgress]) -> Iterator[ExportProgress]:
        """Export, and write the program whether it runs or not."""
        self.request = request
        self.cell = Cell(request.target.name, request.case.name)
        folder = Path(os.environ[RECORDS]) / self.cell.target
        self.path = folder / f"{self.cell.case}{corpus.SUFFIX}"
        try:
            for self.reached in stages:
                # Without a kernel for it, a program is not run.
                self.pte = self.reached.result.pte if self.reached.result is not None else b""
                yield self.reached
        finally:
            self.write()

    def runs(self, sample: str, pte: bytes) -> None:
        """Write the program of the runtime; number the calls of delegates."""
        self.sample, self.numbers, self.pte = sample, 0, pte
        if pte:
            self.write()

    def ran(self, sample: str, outputs: Sequence[Tensor]) -> None:
        """Record the runtime's outputs."""
        if self.pte:
            self.outputs[sample] = tuple(outputs)

    def calls(self, payload: bytes, arrays: Sequence[Any]) -> None:
        """Write the payload with its inputs."""
        self.numbers += 1
        name, inputs = f"{self.sample}, call {self.numbers}", tuple(map(FrozenTensor.of_array, arrays))
        self.payload = of_sizes(payload, arrays)
        self.payloads.setdefault(self.payload, []).append(FrozenSample(name, (inputs,)))
        self.write()

    def called(self, payload: bytes, arrays: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Record the payload's outputs."""
        samples = self.payloads[self.payload]
        (inputs,) = samples[-1].steps
        gave = tuple(map(FrozenTensor.of_array, outputs))
        samples[-1] = of_call(samples[-1].name, inputs, gave, self.request.bound)

    def write(self) -> None:
        """Write the records so far."""
        corpus.write(self.path, Shipped(self.cell, self.release, tuple(self._programs())))

    def _programs(self) -> Iterator[FrozenProgram]:
        if self.request.target.runs == RUNTIME and self.pte:
            yield FrozenProgram(WHOLE, EXECUTORCH, (), self.pte, tuple(self._samples()))
        for number, (payload, samples) in enumerate(self.payloads.items()):
            yield FrozenProgram(f"payload {number}", REFERENCE_MODEL, (), payload, tuple(samples))

    def _samples(self) -> Iterator[FrozenSample]:
        (reference,) = self.reached.references
        made = [
            artifact.Sample(name, reference.expected[name], (), reference.moved[name].spreads)
            for name in reference.samples
        ]
        assert self.reached.made is not None
        lowered: Lowered = replace(self.reached.made, samples=tuple(made))
        for sample in made:
            tolerances = (lowered.tolerance(sample, index) for index in range(len(sample.expected)))
            yield FrozenSample(
                sample.name,
                tuple(tuple(map(of_tensor, step)) for step in reference.samples[sample.name]),
                tuple(map(FrozenTensor.from_tensor, self.outputs.get(sample.name, ()))),
                tuple(map(FrozenTensor.from_tensor, sample.expected)),
                tuple(
                    FrozenTensor.from_tensor(Tensor.from_array(np.asarray(each, np.float64)))
                    for each in tolerances
                ),
            )
