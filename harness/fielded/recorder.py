"""Has the process that exports write down its program with what it is run on.

An exporting process imports this because `harness.sweeping.settings.Settings.models` names it, after the zoos. It
brings the patch `harness.fielded.PATCH`, which `harness.sweeping.sweep.Sweep` is asked to install further.

What is written before a program is run stays when the run ends the process, or is refused: such programs have no place
in an artifact.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from harness import patches, releases
from harness.artifact import Cell, Lowered, Sample, Tensor
from harness.fielded import PATCH, RECORDS, corpus
from harness.fielded.corpus import Input, Program, Run
from harness.targets import RUNTIME


def input_of(tensor: Any, earlier: Sequence[Any] = ()) -> Input:
    """Return how a tensor of torch is written down; `earlier` are the inputs before it."""
    import torch

    same = next((index for index, other in enumerate(earlier) if other is tensor), None)
    whole = tensor.detach().contiguous().reshape(-1)
    return Input(
        str(tensor.dtype).removeprefix("torch."),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        whole.view(torch.uint8).numpy().tobytes() if whole.numel() else b"",
        same,
    )


def laid(steps: Sequence[Sequence[Any]]) -> tuple[tuple[Input, ...], ...]:
    """Return the inputs of steps as they are written down."""
    return tuple(
        tuple(input_of(tensor, inputs[:index]) for index, tensor in enumerate(inputs)) for inputs in steps
    )


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
        self.payloads: list[bytes] = []
        self.outputs: dict[str, tuple[Tensor, ...]] = {}
        self.calls: list[Run] = []
        self.sample = ""

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
        self.sample = names[names.index(self.sample) + 1 if self.sample else 0]
        return real(program, steps)

    def run_model(self, real: Callable[..., Any], payload: bytes, arrays: Sequence[Any]) -> Any:
        """Run a payload as `harness.exporting.numerics.run_model` does."""
        if payload not in self.payloads:
            self.payloads.append(payload)
        calls = sum(call.name.startswith(f"{self.sample}, call ") for call in self.calls)
        inputs = tuple(
            Input(str(array.dtype), array.shape, (), np.ascontiguousarray(array).tobytes())
            for array in arrays
        )
        name = f"{self.sample}, call {calls + 1}"
        call = Run(name, self.payloads.index(payload), (inputs,), (), (), None)
        self.calls.append(call)
        self.write()
        outputs = real(payload, arrays)
        given = tuple(corpus.tensor_of(output) for output in outputs)
        tolerances = tuple(self._tolerance(output) for output in outputs)
        self.calls[-1] = Run(name, call.binary, call.steps, given, tolerances, given)
        return outputs

    def _tolerance(self, output: Any) -> Tensor:
        """Return how far an output of a payload may be from what its own release's reference model gives.

        Integers are exact in TOSA. Floating ones have the target's bound; none was measured inside of a program.
        """
        finite = np.abs(output[np.isfinite(output)]) if output.dtype.kind == "f" else np.zeros(0)
        return Tensor.of(np.array(self.attempt.bound * float(finite.max(initial=0.0)), np.float64))

    def write(self) -> None:
        """Write what is known by now."""
        runs_in = self.attempt.target.runs
        binaries, runs = tuple(self.payloads), tuple(self.calls)
        if runs_in == RUNTIME and self.pte:
            binaries, runs = (self.pte,), self._samples()
        corpus.write(self.path, Program(self.cell, self.release, runs_in, binaries, runs))

    def _samples(self) -> tuple[Run, ...]:
        attempt = self.attempt
        made = [Sample(name, attempt.expected[name], (), attempt.spreads[name]) for name in attempt.samples]
        assert attempt.made is not None
        lowered: Lowered = replace(attempt.made, samples=tuple(made))
        return tuple(
            Run(
                sample.name,
                0,
                laid(attempt.samples[sample.name]),
                sample.expected,
                tuple(
                    Tensor.of(np.asarray(lowered.tolerance(sample, index), np.float64))
                    for index in range(len(sample.expected))
                ),
                self.outputs.get(sample.name),
            )
            for sample in made
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
