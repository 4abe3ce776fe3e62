"""Judges a device's results: files of outputs, compared with the frozen ones. Nothing is run.

An output is ``output-<i>.npy``, or ``output-<i>.bin``: the bytes of the tensor as they are in the device's memory,
which say neither dtype nor shape. The folder is as `executorch_goldens_plugins.field.replay` names it.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from executorch_goldens.artifact import Cell
from executorch_goldens.files import untrusted
from executorch_goldens_plugins.field import comparing
from executorch_goldens_plugins.field.format import (
    ITEMSIZE,
    LARGEST_TENSOR,
    NOT_IN_NUMPY,
    FrozenSample,
    FrozenTensor,
)
from executorch_goldens_plugins.field.replay import folder_of

#: Results of a sample, beside those of `executorch_goldens_plugins.field.comparing`: an output is missing, or its file
#: ends before the output does.
MISSING, TRUNCATED = "missing", "truncated"
#: Formats of an output.
ARRAY, MEMORY = ".npy", ".bin"
#: Bytes of the header of a ``.npy``: numpy reads no longer one.
LARGEST_HEADER = 10_000
#: Exceptions of numpy for a damaged one.
DAMAGED = (ValueError, TypeError, SyntaxError, RecursionError, tokenize.TokenError)


@dataclass(frozen=True)
class JudgedSample:
    """The result of a sample.

    Attributes
    ----------
    result
        ``same``, ``within rounding``, ``wrong``, ``missing`` or ``truncated``.
    reason
        A line; empty for ``same``.
    """

    cell: Cell
    program: str
    sample: str
    result: str
    reason: str

    @property
    def is_right(self) -> bool:
        return self.result in comparing.RIGHT


class _UnusableError(ValueError):
    """An output that is not compared: a word for it, and why."""

    def __init__(self, word: str, reason: str) -> None:
        super().__init__(reason)
        self.word = word


def judge(cell: Cell, program: str, sample: FrozenSample, folder: Path) -> JudgedSample:
    """Compare the outputs of a sample in `folder` with the frozen ones."""
    try:
        outputs = tuple(_outputs(sample, folder, folder_of(str(cell), program, sample.name)))
    except _UnusableError as error:
        return JudgedSample(cell, program, sample.name, error.word, str(error))
    return JudgedSample(cell, program, sample.name, *comparing.of_sample(sample, outputs))


def _outputs(sample: FrozenSample, folder: Path, place: PurePosixPath) -> Iterator[FrozenTensor]:
    try:
        there = untrusted.inside(folder, *place.parts)
    except untrusted.UntrustedError as error:
        raise _UnusableError(MISSING, str(error)) from error
    if not there.is_dir():
        raise _UnusableError(MISSING, f"no folder {there}")
    count = len(sample.outputs)
    if any((there / f"output-{count}{suffix}").exists() for suffix in (ARRAY, MEMORY)):
        raise _UnusableError(
            comparing.WRONG, f"more outputs than the {count} that were frozen: output-{count}"
        )
    for index, frozen in enumerate(sample.outputs):
        files = [there / f"output-{index}{suffix}" for suffix in (ARRAY, MEMORY)]
        found = [file for file in files if file.exists()]
        if not found:
            raise _UnusableError(
                MISSING, f"output {index} of {count}: no {files[0].name} or {files[1].name} in {there}"
            )
        if len(found) > 1:
            raise _UnusableError(
                comparing.WRONG, f"output {index} is there twice: {files[0].name}, {files[1].name}"
            )
        yield _read(found[0], index, frozen)


def _read(file: Path, index: int, frozen: FrozenTensor) -> FrozenTensor:
    try:
        data = untrusted.contents(file, LARGEST_TENSOR + LARGEST_HEADER)
    except (OSError, untrusted.UntrustedError) as error:
        raise _UnusableError(comparing.WRONG, f"output {index} cannot be read: {error}") from error
    return _of_memory(data, index, frozen) if file.suffix == MEMORY else _of_array(data, index, frozen)


def _of_memory(data: bytes, index: int, frozen: FrozenTensor) -> FrozenTensor:
    """Return the tensor that bytes are, if they are as many as were frozen."""
    _require_size(len(data), len(frozen.data), index, frozen)
    return FrozenTensor.of_memory(frozen.dtype, frozen.shape, data, frozen.strides)


def _of_array(data: bytes, index: int, frozen: FrozenTensor) -> FrozenTensor:
    """Return the tensor that a ``.npy`` holds (numpy.lib.format, versions 1.0 to 3.0), in little endian."""
    if frozen.dtype in NOT_IN_NUMPY:
        raise _UnusableError(
            comparing.WRONG,
            f"output {index} is {frozen.dtype}, which no .npy has: bring output-{index}.bin back",
        )
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)  # type: ignore[no-untyped-call]
        known = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, in_columns, dtype = known[version != (1, 0)](stream)  # type: ignore[no-untyped-call]
    except DAMAGED as error:
        word = TRUNCATED if len(data) < len(frozen.data) else comparing.WRONG
        raise _UnusableError(word, f"output {index} is no .npy: {error}") from error
    if dtype.name != frozen.dtype or tuple(shape) != tuple(frozen.shape):
        raise _UnusableError(
            comparing.WRONG,
            f"output {index} is {dtype.name}{list(shape)} where {frozen.dtype}{list(frozen.shape)} was frozen",
        )
    elements = data[stream.tell() :]
    _require_size(len(elements), len(frozen.data), index, frozen)
    array = np.frombuffer(elements, dtype).reshape(shape, order="F" if in_columns else "C")
    return FrozenTensor(
        frozen.dtype, frozen.shape, array.astype(dtype.newbyteorder("<")).tobytes(), frozen.strides
    )


def _require_size(there: int, frozen: int, index: int, value: FrozenTensor) -> None:
    """Raise `_UnusableError` unless there are the bytes that were frozen."""
    if there != frozen:
        word = TRUNCATED if there < frozen else comparing.WRONG
        takes = f"{value.dtype}{list(value.shape)} takes {frozen:,}, {ITEMSIZE[value.dtype]} for each element"
        raise _UnusableError(word, f"output {index} has {there:,} bytes where {takes}")
