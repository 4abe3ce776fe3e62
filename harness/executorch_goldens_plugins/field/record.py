"""The record of one export that an exporting process writes for the freezing process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable
from executorch_goldens_plugins.field.format import FrozenSample, FrozenTensor

#: The module that writes records, in exporting processes.
RECORDER = "executorch_goldens_plugins.field.recorder:InputRecorder"
#: Environment variable: the folder that records go to.
FOLDER = "GOLDENS_RECORDS"


@dataclass(frozen=True)
class TosaCall:
    """One call of a TOSA delegate in the reference model: bfloat16 and float8 are the bits, in a dtype of numpy's.

    Attributes
    ----------
    payload
        The payload in the program.
    ran
        The reference model's input: `payload`, with the sizes of these inputs where it leaves sizes open.
    """

    payload: bytes
    ran: bytes
    inputs: tuple[FrozenTensor, ...]
    outputs: tuple[FrozenTensor, ...]


def of_call(
    name: str, inputs: tuple[FrozenTensor, ...], outputs: tuple[FrozenTensor, ...], bound: float
) -> FrozenSample:
    """Return a call of a delegate as a sample: its own outputs are the only reference.

    Integers are exact in TOSA. Floating values have the target's bound; none was measured inside of a program.

    Parameters
    ----------
    bound
        See `executorch_goldens.artifact.Lowered.bound`.
    """
    tolerances = []
    for output in outputs:
        values = output.tensor().array()
        rounded = np.issubdtype(values.dtype, np.inexact)
        sizes = np.abs(values[np.isfinite(values)]) if rounded else np.zeros(0)
        tolerances.append(bound * float(sizes.max(initial=0.0)))
    return FrozenSample(name, (inputs,), outputs, outputs, tuple(tolerances))


@dataclass(frozen=True)
class RecordedInputs:
    """The inputs that a program was run on.

    Attributes
    ----------
    samples
        The inputs of each step, by name of the sample.
    calls
        Inputs of its delegates meanwhile, by name of the sample; none where the runtime ran it.
    constants
        The inputs that are no tensors, in words.
    methods
        The method that each step runs, by name of the sample; nothing where all run the one there is.
    """

    samples: Mapping[str, tuple[tuple[FrozenTensor, ...], ...]]
    calls: Mapping[str, tuple[TosaCall, ...]]
    constants: str = ""
    methods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def write(self, folder: Path, cell: Cell) -> None:
        """Leave the record of a cell whole, or nothing."""
        durable.replace(_file(folder, cell), msgspec.msgpack.encode(self), synced=False)

    @classmethod
    def take(cls, folder: Path, cell: Cell) -> RecordedInputs | None:
        """Return the record of a cell, and delete it; None where its export made no program."""
        file = _file(folder, cell)
        if not file.exists():
            return None
        found = msgspec.msgpack.decode(file.read_bytes(), type=cls)
        file.unlink()
        return found


def _file(folder: Path, cell: Cell) -> Path:
    return folder / cell.target / f"{cell.case}.msgpack"
