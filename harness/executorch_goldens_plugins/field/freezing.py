"""Makes the programs of a corpus from exports: of cells that repeat and are right, as goldens are recorded."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from executorch_goldens.artifact import Cell, Failure, Lowered, Outcome
from executorch_goldens.decode import DecodeError, Graph, Schemas, decode
from executorch_goldens.judging import verdict
from executorch_goldens.judging.exports import Exports
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words.findings import NOT_RUN
from executorch_goldens.words.verdicts import reason
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.variations import Variation
from executorch_goldens_plugins.field import comparing
from executorch_goldens_plugins.field.format import (
    DEVICE,
    EXECUTORCH,
    FORWARD,
    NOT_IN_NUMPY,
    REFERENCE_MODEL,
    FrozenProgram,
    FrozenSample,
    FrozenTensor,
)
from executorch_goldens_plugins.field.record import FOLDER, RECORDER, RecordedInputs, TosaCall, of_call
from executorch_goldens_plugins.field.running import Runtime

#: Seconds between two looks at a sweep.
LOOK = 5.0


class RefusedError(ValueError):
    """A cell that a corpus does not take; the message says why."""


@dataclass(frozen=True)
class Exported:
    """The exports of a cell under every variation, and the inputs of the first."""

    outcomes: tuple[Outcome, ...]
    record: RecordedInputs | None


def engines_of(cells: Sequence[Cell]) -> list[str]:
    """Return the engines that programs of some cells run in."""
    runs = {targets.find(cell.target).runs for cell in cells}
    known = ((EXECUTORCH, targets.RUNTIME), (REFERENCE_MODEL, targets.REFERENCE_MODEL))
    return [engine for engine, of_target in known if runs & {of_target, targets.EITHER}]


def exported(
    cells: Sequence[Cell], variations: Sequence[Variation], settings: Settings, reuse: Reuse | None
) -> Iterator[tuple[Cell, Exported]]:
    """Export `cells` under each of `variations`; yield them in their order.

    Under the first variation the exporting process writes down what it runs, so that no store can serve for that. The
    others are exported, or reused, as in any run.
    """
    first, *others = variations
    recording = replace(settings, observer=RECORDER)
    with tempfile.TemporaryDirectory(prefix="goldens-records-") as name, _variable(FOLDER, name):
        folder = Path(name)
        with Sweep(cells, (first,), recording) as recorded:
            for cell in cells:
                while not recorded.ready(cell, LOOK):
                    pass
            with Sweep(cells, others, settings, reuse=reuse) as repeated:
                for cell in cells:
                    outcomes = (*recorded.outcomes(cell), *repeated.outcomes(cell))
                    yield cell, Exported(outcomes, RecordedInputs.take(folder, cell))


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def programs(cell: Cell, exports: Exported, runtime: Runtime) -> tuple[FrozenProgram, ...]:
    """Return the frozen form of a cell.

    Each program that can be run here is run once more, as `thaw` will: what does not give the same bytes again in the
    runtime that it was made with says nothing in another.

    Raises
    ------
    RefusedError
        For a cell that could not be recorded as a golden either, or whose golden would be a failure; for one that was
        not run, does not give the same again, or holds what a corpus has no form for.
    """
    lowered = _right(cell, exports.outcomes)
    if exports.record is None:
        raise RefusedError("its export recorded no inputs")
    if exports.record.constants:
        raise RefusedError(
            f"it has inputs that are no tensors ({exports.record.constants}), and a corpus holds tensors only"
        )
    try:
        made = (_whole(cell, lowered, exports.record), *_delegates(lowered, exports.record))
        return tuple(
            program if program.engine == DEVICE else _run_again(program, runtime) for program in made
        )
    except ValueError as error:
        raise RefusedError(str(error)) from error


def _right(cell: Cell, outcomes: Sequence[Outcome]) -> Lowered:
    """Return the artifact that all exports of a cell agree on, if it is right; raise RefusedError."""
    try:
        objection = verdict.objection(cell, outcomes)
    except DecodeError as error:
        raise RefusedError(f"undecodable: {error}") from error
    if objection is not None:
        raise RefusedError(f"{objection.name}: {reason(objection)}")
    result = Exports(outcomes).agreed.result
    if isinstance(result, Failure):
        raise RefusedError(f"lowering fails: {result.type}: {result.message.partition(chr(10))[0]}")
    if result.not_run:
        raise RefusedError(f"{NOT_RUN} {result.not_run}")
    return result


def _whole(cell: Cell, lowered: Lowered, record: RecordedInputs) -> FrozenProgram:
    """Return the whole program."""
    backends = tuple(dict.fromkeys(delegate.backend_id for delegate in lowered.delegates))
    runs = targets.find(cell.target).runs
    in_runtime = runs == targets.RUNTIME or (runs == targets.EITHER and not record.calls)
    methods = {sample.name: record.methods.get(sample.name, ()) for sample in lowered.samples}
    last = {name: (of or (FORWARD,))[-1] for name, of in methods.items()}
    plans = {name: _plan(lowered, name) for name in {*last.values()}}
    samples = tuple(
        FrozenSample(
            sample.name,
            record.samples[sample.name],
            tuple(_in_memory(plans[last[sample.name]], list(map(FrozenTensor.from_tensor, sample.outputs)))),
            tuple(map(FrozenTensor.from_tensor, sample.expected)),
            tuple(_tolerance(lowered.tolerance(sample, index)) for index in range(len(sample.expected))),
            methods[sample.name],
        )
        for sample in lowered.samples
    )
    engine = EXECUTORCH if in_runtime else DEVICE
    return FrozenProgram("program", engine, backends, lowered.pte, samples, lowered.data)


def _delegates(lowered: Lowered, record: RecordedInputs) -> Iterator[FrozenProgram]:
    """Yield each delegate that the reference model ran as a program by itself."""
    calls: dict[bytes, list[tuple[str, TosaCall]]] = defaultdict(list)
    for name, of_sample in record.calls.items():
        for call in of_sample:
            calls[call.payload].append((name, call))
    for index, delegate in enumerate(lowered.delegates):
        # Two delegates may have one payload: it is frozen once. One that leaves sizes open is frozen at each size that
        # it was run at: no reference model takes it as it is.
        by_sizes: dict[bytes, list[FrozenSample]] = defaultdict(list)
        for at, (name, call) in enumerate(calls.pop(delegate.payload, [])):
            sample = of_call(f"{name}, call {at}", call.inputs, call.outputs, lowered.bound)
            by_sizes[call.ran].append(sample)
        for number, (payload, of_sizes) in enumerate(by_sizes.items()):
            name = f"delegate_{index}" + (f"-sizes-{number}" if len(by_sizes) > 1 else "")
            yield FrozenProgram(name, REFERENCE_MODEL, (delegate.backend_id,), payload, tuple(of_sizes))


def _tolerance(tolerance: npt.NDArray[np.float64]) -> float | FrozenTensor:
    """Return a tolerance as one number where it is the same for every element."""
    if not np.isfinite(tolerance).all():
        raise RefusedError("rounding alone may move an output by any amount")
    least, most = float(tolerance.min(initial=np.inf)), float(tolerance.max(initial=0.0))
    if least >= most:
        return most
    return FrozenTensor("float64", tuple(tolerance.shape), tolerance.astype("<f8").tobytes())


def _plan(lowered: Lowered, method: str) -> Graph:
    """Return a program's description of a method; raise RefusedError."""
    decoded = decode(lowered.pte, schemas=Schemas.under(*lowered.schemas))
    for graph in decoded.graphs:
        if graph.name == method:
            return graph
    raise RefusedError(f"the program has no method {method}")


def _in_memory(plan: Graph, outputs: Sequence[FrozenTensor]) -> Iterator[FrozenTensor]:
    """Yield outputs in the dtype and the order in memory in which the program has them; raise RefusedError."""
    if len(outputs) != len(plan.outputs):
        raise RefusedError(f"the program has {len(plan.outputs)} outputs, and {len(outputs)} were recorded")
    for index, (name, output) in enumerate(zip(plan.outputs, outputs, strict=True)):
        value = plan.values[name]
        order = value.attributes.get("dim_order")
        if value.shape is None or not isinstance(order, tuple | None):
            raise RefusedError(f"output {index} is no tensor but {value.dtype}")
        dtype = next((each for each in NOT_IN_NUMPY if each.replace("_", "").upper() == value.dtype), None)
        own = output if dtype is None else output.narrowed(dtype)
        yield replace(own, strides=_strides(own.shape, [int(str(at)) for at in order or ()]))


def _strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...] | None:
    """Return how far elements are from each other in memory, None in C order.

    Parameters
    ----------
    order
        The dimensions, the outermost first: ``dim_order`` in ``schema/program.fbs``.
    """
    if list(order) == sorted(order):
        return None
    strides, span = [0] * len(shape), 1
    for at in reversed(order):
        strides[at] = span
        span *= shape[at]
    return tuple(strides)


def _run_again(program: FrozenProgram, runtime: Runtime) -> FrozenProgram:
    """Return `program` if it gives the same once more; raise RefusedError."""
    result = comparing.compare(program, runtime.run(program))
    if result.word != comparing.SAME:
        raise RefusedError(
            f"{program.name} is not the same when it is run again: {result.word}: {result.reason}"
        )
    return program
