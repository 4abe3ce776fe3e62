"""Has the process that exports write down its program with what it is run on.

An exporting process imports this because `harness.sweeping.settings.Settings.models` names it, after the zoos. It
brings the patch `harness.fielded.PATCH`, which `harness.sweeping.sweep.Sweep` is asked to install further.

What is written before a program is run stays when the run ends the process, or is refused: such programs have no place
in an artifact.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from harness import artifact, patches, releases
from harness.artifact import Cell, Lowered, Tensor
from harness.corpus.format import EXECUTORCH, REFERENCE_MODEL, Program, Sample, Value
from harness.corpus.record import of_call
from harness.corpus.recorder import of_tensor
from harness.fielded import PATCH, RECORDS, corpus
from harness.fielded.corpus import WHOLE, Shipped
from harness.targets import RUNTIME


class Recording:
    """What one export is seen to run.

    Parameters
    ----------
    attempt
        A `harness.exporting.export.Export`.
    """

    def __init__(self, attempt: Any, release: str, folder: Path) -> None:
        self.attempt = attempt
        self.cell = Cell(attempt.target.name, attempt.case.name)
        self.release = release
        self.path = folder / self.cell.target / f"{self.cell.case}{corpus.SUFFIX}"
        self.pte = b""
        self.outputs: dict[str, tuple[Tensor, ...]] = {}
        #: What each payload was run on.
        self.payloads: dict[bytes, list[Sample]] = {}
        self.sample = ""
        self.calls = 0

    def in_runtime(self, real: Callable[..., Any], pte: bytes, steps: Any) -> Any:
        """Run a program as `harness.exporting.numerics.in_runtime` does."""
        self.pte = pte
        name = list(self.attempt.samples)[len(self.outputs)]
        self.write()
        self.outputs[name] = real(pte, steps)
        return self.outputs[name]

    def in_reference_model(self, real: Callable[..., Any], program: Any, steps: Any) -> Any:
        """Run a program as `harness.exporting.numerics.in_reference_model` does."""
        names = list(self.attempt.samples)
        self.sample, self.calls = names[names.index(self.sample) + 1 if self.sample else 0], 0
        return real(program, steps)

    def run_model(self, real: Callable[..., Any], payload: bytes, arrays: Sequence[Any]) -> Any:
        """Run a payload as `harness.exporting.numerics.run_model` does."""
        self.calls += 1
        name, inputs = f"{self.sample}, call {self.calls}", tuple(map(Value.of_array, arrays))
        samples = self.payloads.setdefault(payload, [])
        samples.append(Sample(name, (inputs,)))
        self.write()
        outputs = real(payload, arrays)
        samples[-1] = of_call(name, inputs, tuple(map(Value.of_array, outputs)), self.attempt.bound)
        return outputs

    def write(self) -> None:
        """Write what is known by now."""
        corpus.write(self.path, Shipped(self.cell, self.release, tuple(self._programs())))

    def _programs(self) -> Iterator[Program]:
        if self.attempt.target.runs == RUNTIME and self.pte:
            yield Program(WHOLE, EXECUTORCH, (), self.pte, tuple(self._samples()))
        for number, (payload, samples) in enumerate(self.payloads.items()):
            yield Program(f"payload {number}", REFERENCE_MODEL, (), payload, tuple(samples))

    def _samples(self) -> Iterator[Sample]:
        attempt = self.attempt
        made = [
            artifact.Sample(name, attempt.expected[name], (), attempt.spreads[name])
            for name in attempt.samples
        ]
        assert attempt.made is not None
        lowered: Lowered = replace(attempt.made, samples=tuple(made))
        for sample in made:
            tolerances = (lowered.tolerance(sample, index) for index in range(len(sample.expected)))
            yield Sample(
                sample.name,
                tuple(tuple(map(of_tensor, step)) for step in attempt.samples[sample.name]),
                tuple(map(Value.of, self.outputs.get(sample.name, ()))),
                tuple(map(Value.of, sample.expected)),
                tuple(Value.of(Tensor.of(np.asarray(each, np.float64))) for each in tolerances),
            )


def _install(release: str) -> None:
    from harness.exporting import numerics
    from harness.exporting.export import Export

    run = Export.run
    folder = Path(os.environ[RECORDS])
    names = ("in_runtime", "in_reference_model", "run_model")

    @wraps(run)
    def recorded(self: Export) -> Any:
        recording = Recording(self, release, folder)
        real = {name: getattr(numerics, name) for name in names}

        def seen(name: str) -> Callable[..., Any]:
            return lambda *given: getattr(recording, name)(real[name], *given)

        for name in names:
            setattr(numerics, name, seen(name))
        try:
            lowered = run(self)
            # Without a kernel for it, a program is not run.
            recording.pte = lowered.pte
            return lowered
        finally:
            for name, function in real.items():
                setattr(numerics, name, function)
            recording.write()

    Export.run = recorded  # type: ignore[method-assign]


patches.register(
    patches.Patch(
        name=PATCH,
        report=None,
        summary="nothing is different; the program and what it is run on are written down",
        known={version: {} for version in releases.load().releases},
        install=_install,
    )
)
