"""Runs a program as it is loaded otherwise than from a buffer: a defect of the runtime may show only there.

From a buffer, the runtime reads what the process holds. From a file it maps it, and unmaps what it takes for done:
constants that a delegate still reads are gone then (upstream's #21480). All five releases map the file in both of their
interfaces, that of a module and that of a program with methods; none offers to read it.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from executorch_goldens.artifact import Tensor
from executorch_goldens.exporting.apart import ApartError, run_apart
from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.programs import Steps
from executorch_goldens.files import logged
from executorch_goldens.goldens.deviation import Deviation

Outputs = Mapping[str, tuple[Tensor, ...]]
#: Runs a method of the program in a file, step by step, and returns what the last step gives.
Run = Callable[[str, Steps, str], list[Any]]


@handed_on
def run_module(path: str, steps: Steps, method: str) -> list[Any]:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    module = _load_for_executorch(path)
    return numerics.last_outputs(lambda inputs: module.run_method(method, inputs), steps)


@handed_on
def run_method(path: str, steps: Steps, method: str) -> list[Any]:
    from executorch.extension.pybindings.portable_lib import _load_program

    program = _load_program(path)
    loaded = program.load_method(method)
    return numerics.last_outputs(loaded.call, steps)


#: The ways, in words that follow "loaded".
WAYS: Mapping[str, Run] = {
    "from a file that is mapped into memory, as a module": run_module,
    "from a file that is mapped into memory, as a program": run_method,
}


def differences(
    pte: bytes, samples: Mapping[str, Steps], given: Outputs, limit: float, method: str
) -> Iterator[str]:
    """Yield a line for each way of loading a program in which it gives something else than from a buffer.

    Parameters
    ----------
    given
        Its outputs from a buffer, by sample.
    limit
        Seconds that each way may take.
    """
    with tempfile.NamedTemporaryFile(suffix=".pte") as file:
        file.write(pte)
        file.flush()
        for way, run in WAYS.items():
            begun = logged.end()
            try:
                # The process that maps the file may die of what it unmaps.
                otherwise = run_apart(partial(_run, run, file.name, samples, method), limit)
            except ApartError as error:
                otherwise = str(error)
            if isinstance(otherwise, str):
                reason = logged.explained(otherwise, logged.since(begun))
                yield f"loaded {way}, the program does not run: {reason}"
                continue
            for line in _unlike(given, otherwise):
                yield f"loaded {way}, the program gives something else than from a buffer: {line}"


def _run(run: Run, path: str, samples: Mapping[str, Steps], method: str) -> Outputs | str:
    """Return the outputs by sample, or the exception in words."""
    try:
        return {
            name: numerics.flatten(run(path, copy.deepcopy(steps), method)) for name, steps in samples.items()
        }
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _unlike(given: Outputs, otherwise: Outputs) -> Iterator[str]:
    """Yield how the outputs of the first sample that differs do; the same kernels give the same bits."""
    for name, outputs in given.items():
        if len(outputs) != len(otherwise[name]):
            yield f"{len(otherwise[name])} outputs, and not {len(outputs)} ({name})"
            return
        for index, (expected, actual) in enumerate(zip(outputs, otherwise[name], strict=True)):
            deviation = Deviation(expected, actual)
            if deviation.exceeds_tolerance():
                yield deviation.line(f"output {index} ({name})")
                return
